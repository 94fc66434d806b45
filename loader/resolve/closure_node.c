#include "loader/resolve/closure_node.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/image/exports.h"

void exti__closure_node_clear(struct exti_closure_node *n)
{
    for (size_t i = 0; i < n->need_count; i++) {
        exti__free(n->needs[i].name);
        exti__free(n->needs[i].problem);
    }
    for (size_t i = 0; i < n->alias_count; i++)
        exti__free(n->aliases[i]);
    exti__free(n->needs);
    exti__free(n->aliases);
    exti__free(n->path);
    exti__free(n->real);
    exti__free(n->soname);
    exti__free(n->rpath);
    exti__free(n->runpath);
    for (size_t i = 0; i < n->path_count; i++)
        exti__free(n->paths[i]);
    exti__free(n->paths);
}

/* ---- names ---- */

bool exti__closure_node_has_name(const struct exti_closure_node *n,
                                 const struct exti_search_ops *ops, const char *name)
{
    if (ops->same_name(n->path, name) ||
        (n->soname && !ops->by_file && ops->same_name(n->soname, name)))
        return true;
    for (size_t i = 0; i < n->alias_count; i++)
        if (ops->same_name(n->aliases[i], name))
            return true;
    return false;
}

int exti__closure_node_add_alias(struct exti_closure_node *n, const struct exti_search_ops *ops,
                                 const char *name, struct exti_error *err)
{
    char **grown, *copy;

    if (exti__closure_node_has_name(n, ops, name))
        return 0;
    copy = exti__strdup(name);
    grown = copy ? exti__realloc_array(n->aliases, n->alias_count + 1, sizeof *grown) : NULL;
    if (!grown) {
        exti__free(copy);
        return exti__fail_nomem(err);
    }
    grown[n->alias_count++] = copy;
    n->aliases = grown;
    return 0;
}

struct exti_requester exti__closure_node_requester(const struct exti_closure_node *n)
{
    return (struct exti_requester){.path = n->path,
                                   .real = n->real,
                                   .rpath = n->rpath,
                                   .runpath = n->runpath,
                                   .flags = n->flags,
                                   .kind = n->kind,
                                   .paths = (const char *const *)n->paths,
                                   .path_count = n->path_count,
                                   .machines = n->machines};
}

/* ---- needs and search paths ---- */

static int add_path(struct exti_closure_node *n, const char *path, struct exti_error *err)
{
    char **grown;

    for (size_t i = 0; i < n->path_count; i++)
        if (strcmp(n->paths[i], path) == 0)
            return 0;
    grown = exti__realloc_array(n->paths, n->path_count + 1, sizeof *grown);
    if (!grown)
        return exti__fail_nomem(err);
    n->paths = grown;
    return exti__copy_text(&n->paths[n->path_count++], path, err);
}

/* The need called `name` among the first `count`, or NULL. */
static struct exti_closure_need *need_named(const struct exti_closure_node *n, size_t count,
                                            const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(n->needs[i].name, name) == 0)
            return &n->needs[i];
    return NULL;
}

/* Adds the needs and search paths of one slice.  A library that an earlier slice needs too is one
 * need. */
static int add_slice(struct exti_closure_node *n, const struct exti_image *im,
                     struct exti_error *err)
{
    const size_t before = n->need_count;
    struct exti_closure_need *needs =
        exti__realloc_array(n->needs, before + im->info.needed_count + 1, sizeof *needs);
    int rc = 0;

    if (!needs)
        return exti__fail_nomem(err);
    n->needs = needs;
    for (size_t i = 0; i < im->info.needed_count && !rc; i++) {
        const struct exti_image_needed *from = &im->needed[i];
        const bool optional = from->flags & EXTI_NEED_WEAK;
        struct exti_closure_need *same = need_named(n, before, from->name), *to;

        if (same) {
            same->optional = same->optional && optional;
            continue;
        }
        to = &n->needs[n->need_count++];
        *to = (struct exti_closure_need){.node = EXTI_NO_NODE, .optional = optional};
        rc = exti__copy_text(&to->name, from->name, err);
    }
    for (size_t i = 0; i < im->path_count && !rc; i++)
        rc = add_path(n, im->paths[i], err);
    return rc;
}

static bool has_need(const struct exti_search_ops *ops, const struct exti_closure_node *n,
                     const char *name)
{
    for (size_t i = 0; i < n->need_count; i++)
        if (ops->same_name(n->needs[i].name, name))
            return true;
    return false;
}

/* PE: the libraries of forwarders are optional needs, as Windows follows a forwarder only when its
 * symbol is asked for. */
static int add_forwarders(struct exti_closure_node *n, const struct exti_image *im,
                          const struct exti_search_ops *ops, struct exti_error *err)
{
    char library[EXTI_FILE_NAME_MAX + 1];
    int rc = 0;

    for (size_t i = 0; i < im->info.symbol_count && !rc; i++) {
        const char *forward = im->symbols[i].forward;
        struct exti_closure_need *grown;

        if (!forward || !exti__forward_split(forward, library) || has_need(ops, n, library))
            continue;
        grown = exti__realloc_array(n->needs, n->need_count + 1, sizeof *grown);
        if (!grown)
            return exti__fail_nomem(err);
        n->needs = grown;
        grown[n->need_count] = (struct exti_closure_need){.node = EXTI_NO_NODE, .optional = true};
        rc = exti__copy_text(&grown[n->need_count++].name, library, err);
    }
    return rc;
}

/* ---- all of it ---- */

/* Of the file's machines those that the API library has too; all of them if there is no such
 * machine. */
static void choose_machines(struct exti_closure_node *n, const struct exti_image *im,
                            const struct exti_closure_node *api)
{
    const struct exti_image *p;
    size_t at = 0;

    exti__machines_of(im, n->machines);
    if (!api || !exti__machines_meet(n->machines, api->machines))
        return;
    for (size_t i = 0; (p = exti__image_part(im, i)); i++)
        if (exti__machines_meet(p->info.machine, api->machines))
            at += (size_t)snprintf(n->machines + at, sizeof n->machines - at, "%s%s", at ? "," : "",
                                   p->info.machine);
}

int exti__closure_node_fill(struct exti_closure_node *n, const struct exti_image *im,
                            const struct exti_search_ops *ops, const struct exti_closure_node *api,
                            struct exti_error *err)
{
    const struct exti_image *p;
    int rc = ops->kind ? ops->kind(im->bytes, &n->kind, err) : 0;

    n->flags = im->info.flags;
    choose_machines(n, im, api);
    if (!rc)
        rc = exti__copy_text(&n->soname, im->info.id, err);
    if (!rc)
        rc = exti__copy_text(&n->rpath, im->info.rpath, err);
    if (!rc)
        rc = exti__copy_text(&n->runpath, im->info.runpath, err);
    for (size_t i = 0; !rc && (p = exti__image_part(im, i)); i++)
        if (exti__machines_meet(p->info.machine, n->machines))
            rc = add_slice(n, p, err);
    return rc ? rc : add_forwarders(n, im, ops, err);
}
