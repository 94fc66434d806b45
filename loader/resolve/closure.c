/* The graph.  Each file that is added is walked breadth first, as loaders do, so that a name that two
 * folders could answer gets the file that it would get in a process with that file and the API library
 * alone. */
#include "loader/resolve/closure.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/image/exports.h"
#include "loader/image/machines.h"
#include "loader/resolve/closure_priv.h"
#include "loader/resolve/quirks.h"

/* A node by its file. */
struct file_key {
    uint64_t device, inode;
    size_t node;
};

struct exti_closure_state {
    const struct exti_search_ops *ops; /* of the files' format; NULL: no file yet */
    const struct exti_search *search;  /* NULL: there is nothing that look-ups go by */
    struct exti_search *own;           /* if it is not the caller's */
    struct exti_policy policy;
    const struct exti_quirks *quirks;
    struct exti_image_cache *images;
    struct exti_image_cache no_images;
    enum exti_closure mode;
    char *api_text;         /* the names that the API library exports, one after the other */
    const char **api_names; /* sorted */
    size_t api_count;
    void *files;    /* tree of struct file_key */
    size_t *loaded; /* nodes that this walk has come by, in the loader's order */
    size_t loaded_count, loaded_cap;
    size_t walk;
};

static int file_order(const void *a, const void *b)
{
    const struct file_key *x = a, *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    return (x->inode > y->inode) - (x->inode < y->inode);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- nodes ------------------------------------------------------------------------------------- */

static void clear_node(struct exti_closure_node *n)
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

static bool has_name(const struct exti_search_ops *ops, const struct exti_closure_node *n,
                     const char *name)
{
    if (ops->same_name(n->path, name) ||
        (n->soname && !ops->by_file && ops->same_name(n->soname, name)))
        return true;
    for (size_t i = 0; i < n->alias_count; i++)
        if (ops->same_name(n->aliases[i], name))
            return true;
    return false;
}

static int add_alias(const struct exti_search_ops *ops, struct exti_closure_node *n,
                     const char *name, struct exti_error *err)
{
    char **grown, *copy;

    if (has_name(ops, n, name))
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

static int reserve(void **array, size_t *cap, size_t count, size_t size, struct exti_error *err)
{
    void *grown;

    if (count < *cap)
        return 0;
    grown = exti__realloc_array(*array, *cap ? *cap * 2 : 16, size);
    if (!grown)
        return exti__fail_nomem(err);
    *array = grown;
    *cap = *cap ? *cap * 2 : 16;
    return 0;
}

/* Where each reference names the library that it binds to, it must be the API library that is named. */
static bool names_api(const struct exti_closure_graph *g, const struct exti_image *im,
                      const struct exti_image_symbol *x)
{
    const struct exti_closure_node *api = &g->nodes[g->api];

    if (x->library <= 0 || (size_t)x->library > im->info.needed_count)
        return true;
    return g->state->ops->is_api(im->needed[x->library - 1].name, api->real, api->soname);
}

static bool part_uses_api(const struct exti_closure_graph *g, const struct exti_image *im)
{
    const struct exti_closure_state *s = g->state;

    for (size_t i = 0; i < im->info.symbol_count; i++) {
        const struct exti_image_symbol *x = &im->symbols[i];

        if (!(x->flags & EXTI_SYM_EXPORT) &&
            bsearch(&x->name, s->api_names, s->api_count, sizeof *s->api_names, by_name) &&
            names_api(g, im, x))
            return true;
    }
    return false;
}

static bool uses_api(const struct exti_closure_graph *g, const struct exti_image *im)
{
    const struct exti_image *p;

    if (!g->state->api_count)
        return false;
    for (size_t i = 0; (p = exti__image_part(im, i)); i++)
        if (part_uses_api(g, p))
            return true;
    return false;
}

/* The names outlive the image, whose bytes are a file's that may change. */
static int take_api_names(struct exti_closure_state *s, const struct exti_image *im,
                          struct exti_error *err)
{
    size_t text = 0, count = 0;

    for (size_t i = 0; i < im->info.symbol_count; i++)
        if (im->symbols[i].flags & EXTI_SYM_EXPORT) {
            text += strlen(im->symbols[i].name) + 1;
            count++;
        }
    s->api_text = exti__alloc(text + 1);
    s->api_names = exti__calloc(count + 1, sizeof *s->api_names);
    if (!s->api_text || !s->api_names)
        return exti__fail_nomem(err);
    text = 0;
    for (size_t i = 0; i < im->info.symbol_count; i++)
        if (im->symbols[i].flags & EXTI_SYM_EXPORT) {
            const size_t n = strlen(im->symbols[i].name) + 1;

            memcpy(s->api_text + text, im->symbols[i].name, n);
            s->api_names[s->api_count++] = s->api_text + text;
            text += n;
        }
    if (s->api_count)
        qsort(s->api_names, s->api_count, sizeof *s->api_names, by_name);
    return 0;
}

static int index_node(struct exti_closure_state *s, const struct exti_file_id *id, size_t node,
                      struct exti_error *err)
{
    struct file_key *key = exti__alloc(sizeof *key);

    if (!key)
        return exti__fail_nomem(err);
    *key = (struct file_key){id->device, id->inode, node};
    if (!tsearch(key, &s->files, file_order)) {
        exti__free(key);
        return exti__fail_nomem(err);
    }
    return 0;
}

static int copy_text(const char *text, char **out, struct exti_error *err)
{
    if (text && !(*out = exti__strdup(text)))
        return exti__fail_nomem(err);
    return 0;
}

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
    n->paths[n->path_count] = NULL;
    return copy_text(path, &n->paths[n->path_count++], err);
}

static struct exti_closure_need *find_need(const struct exti_closure_node *n, size_t count,
                                           const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(n->needs[i].name, name) == 0)
            return &n->needs[i];
    return NULL;
}

/* What a part of the file needs and searches.  What an earlier one needs as well is the same need. */
static int describe_part(struct exti_closure_node *n, const struct exti_image *im,
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
        struct exti_closure_need *same = find_need(n, before, from->name), *to;

        if (same) {
            same->optional = same->optional && optional;
            continue;
        }
        to = &n->needs[n->need_count++];
        *to = (struct exti_closure_need){.node = EXTI_NO_NODE, .optional = optional};
        rc = copy_text(from->name, &to->name, err);
    }
    for (size_t i = 0; i < im->path_count && !rc; i++)
        rc = add_path(n, im->paths[i], err);
    return rc;
}

/* Whether it is among the needs, but for how the loader spells names. */
static bool has_need(const struct exti_search_ops *ops, const struct exti_closure_node *n,
                     const char *name)
{
    for (size_t i = 0; i < n->need_count; i++)
        if (ops->same_name(n->needs[i].name, name))
            return true;
    return false;
}

/* PE: forwarders are followed when what is forwarded is asked for, so that the file loads without. */
static int describe_forwarders(const struct exti_search_ops *ops, struct exti_closure_node *n,
                               const struct exti_image *im, struct exti_error *err)
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
        rc = copy_text(library, &grown[n->need_count++].name, err);
    }
    return rc;
}

/* The machines of the file that the API library has too. */
static void keep_machines(const struct exti_closure_graph *g, const struct exti_image *im,
                          struct exti_closure_node *n)
{
    const struct exti_image *p;
    size_t at = 0;

    exti__machines_of(im, n->machines);
    if (g->api == EXTI_NO_NODE || !exti__machines_meet(n->machines, g->nodes[g->api].machines))
        return;
    for (size_t i = 0; (p = exti__image_part(im, i)); i++)
        if (exti__machines_meet(p->info.machine, g->nodes[g->api].machines))
            at += (size_t)snprintf(n->machines + at, sizeof n->machines - at, "%s%s", at ? "," : "",
                                   p->info.machine);
}

/* What is kept of an image.  Slices that no context of the API library runs do not count. */
static int describe(const struct exti_closure_graph *g, struct exti_closure_node *n,
                    const struct exti_image *im, struct exti_error *err)
{
    const struct exti_search_ops *ops = g->state->ops;
    const struct exti_image *p;
    int rc = ops->kind ? ops->kind(im->bytes, &n->kind, err) : 0;

    n->flags = im->info.flags;
    keep_machines(g, im, n);
    if (!rc)
        rc = copy_text(im->info.id, &n->soname, err);
    if (!rc)
        rc = copy_text(im->info.rpath, &n->rpath, err);
    if (!rc)
        rc = copy_text(im->info.runpath, &n->runpath, err);
    for (size_t i = 0; !rc && (p = exti__image_part(im, i)); i++)
        if (exti__machines_meet(p->info.machine, n->machines))
            rc = describe_part(n, p, err);
    return rc ? rc : describe_forwarders(ops, n, im, err);
}

static int ask_quirks(const struct exti_closure_state *s, struct exti_closure_node *n,
                      const struct exti_image *im, struct exti_error *err)
{
    struct exti_quirk_effect e;
    int rc = exti__quirks_apply(s->quirks, n->real, im, &e, err);

    if (rc)
        return rc;
    n->quirk = e.library_by;
    n->quirk_shares = e.library && strcmp(e.library, "share") == 0;
    exti__quirk_effect_free(&e);
    return 0;
}

/* The format of the first file is that of all. */
static int choose_search(struct exti_closure_state *s, enum exti_file_format format,
                         struct exti_error *err)
{
    const struct exti_search_ops *ops = exti__search_ops(format);
    int rc = 0;

    if (!ops)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "is a %s file; of these, the libraries needed cannot be followed here",
                          exti__format_name(format));
    if (!s->search && ops->open_running)
        rc = ops->open_running(&s->own, err);
    if (rc)
        return rc;
    s->search = s->search ? s->search : s->own;
    s->ops = ops;
    s->policy.format = ops->format;
    return 0;
}

static int check_format(struct exti_closure_state *s, const struct exti_image *im,
                        struct exti_error *err)
{
    if (!s->ops)
        return choose_search(s, im->format, err);
    if (im->format == s->ops->format)
        return 0;
    return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                      "is a %s file; it is %s files that it is needed with", im->info.format,
                      exti__format_name(s->ops->format));
}

static int read_node(struct exti_closure_graph *g, struct exti_closure_node *n,
                     struct exti_error *err)
{
    struct exti_closure_state *s = g->state;
    struct exti_image *im = NULL;
    int rc = exti__image_cache_get(s->images, n->path, &n->id, &im, err);

    if (!rc)
        rc = check_format(s, im, err);
    if (!rc)
        rc = describe(g, n, im, err);
    if (!rc && n->api)
        rc = take_api_names(s, im, err);
    else if (!rc)
        n->uses_api = uses_api(g, im);
    if (!rc)
        rc = ask_quirks(s, n, im, err);
    exti__image_cache_put(s->images, im);
    return rc;
}

static int make_node(struct exti_closure_graph *g, const char *path, const struct exti_file_id *id,
                     size_t loader, bool api, struct exti_error *err)
{
    struct exti_closure_node n = {.id = *id,
                                  .loader = loader,
                                  .api = api,
                                  .because = EXTI_NO_NODE,
                                  .original_of = EXTI_NO_NODE};
    int rc = reserve((void **)&g->nodes, &g->cap, g->count, sizeof n, err);

    if (rc)
        return rc;
    rc = exti__fs_realpath(path, &n.real, err);
    if (!rc) /* one that starts at the current folder would not mean the same later */
        rc = copy_text(exti__path_is_absolute(path) ? path : n.real, &n.path, err);
    if (!rc)
        rc = read_node(g, &n, err);
    if (!rc)
        rc = index_node(g->state, id, g->count, err);
    if (rc) {
        exti__error_file(err, path);
        clear_node(&n);
        return rc;
    }
    g->nodes[g->count++] = n;
    return 0;
}

/* The node of the file `path`, made if need be. */
static int node_of(struct exti_closure_graph *g, const char *path, size_t loader, bool api,
                   size_t *out, struct exti_error *err)
{
    struct exti_file_id id;
    struct file_key key = {0}, **found;
    int rc = exti__fs_id(path, &id, err);

    if (rc)
        return rc;
    key.device = id.device;
    key.inode = id.inode;
    found = tfind(&key, &g->state->files, file_order);
    if (found) {
        *out = (*found)->node;
        return add_alias(g->state->ops, &g->nodes[*out], path, err);
    }
    rc = make_node(g, path, &id, loader, api, err);
    if (!rc)
        *out = g->count - 1;
    return rc;
}

/* Takes back the nodes from `from` on. */
static void forget(struct exti_closure_graph *g, size_t from)
{
    while (g->count > from) {
        struct exti_closure_node *n = &g->nodes[--g->count];
        struct file_key key = {n->id.device, n->id.inode, g->count};
        struct file_key **found = tfind(&key, &g->state->files, file_order), *gone = *found;

        tdelete(&key, &g->state->files, file_order);
        exti__free(gone);
        clear_node(n);
    }
}

/* ---- needs ------------------------------------------------------------------------------------- */

static int load(struct exti_closure_graph *g, size_t node, struct exti_error *err)
{
    struct exti_closure_state *s = g->state;
    int rc;

    if (g->nodes[node].walk == s->walk)
        return 0;
    rc = reserve((void **)&s->loaded, &s->loaded_cap, s->loaded_count, sizeof *s->loaded, err);
    if (rc)
        return rc;
    g->nodes[node].walk = s->walk;
    s->loaded[s->loaded_count++] = node;
    return 0;
}

static bool is_api(const struct exti_closure_graph *g, const char *name)
{
    return g->api != EXTI_NO_NODE &&
           g->state->ops->is_api(name, g->nodes[g->api].real, g->nodes[g->api].soname);
}

/* The API library by any of its names, whatever file a folder has for that; else what the walk has come
 * by. */
static size_t find_loaded(const struct exti_closure_graph *g, const char *name)
{
    const struct exti_closure_state *s = g->state;

    if (is_api(g, name))
        return g->api;
    for (size_t i = 0; i < s->loaded_count; i++)
        if (has_name(s->ops, &g->nodes[s->loaded[i]], name))
            return s->loaded[i];
    return EXTI_NO_NODE;
}

static struct exti_requester requester(const struct exti_closure_node *n)
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

/* The file for `name`, looked for on behalf of `node` and those it was loaded for. */
static int search(const struct exti_closure_graph *g, size_t node, const char *name, char **path,
                  struct exti_error *err)
{
    struct exti_requester *chain;
    size_t n = 0, k = 0;
    int rc;

    for (size_t i = node; i != EXTI_NO_NODE; i = g->nodes[i].loader)
        n++;
    chain = exti__calloc(n, sizeof *chain);
    if (!chain)
        return exti__fail_nomem(err);
    for (size_t i = node; i != EXTI_NO_NODE; i = g->nodes[i].loader, k++) {
        chain[k] = requester(&g->nodes[i]);
        chain[k].api = g->api == EXTI_NO_NODE ? NULL : g->nodes[g->api].real;
        chain[k].loader = k + 1 < n ? &chain[k + 1] : NULL;
    }
    rc = g->state->ops->find(g->state->search, chain, name, path, err);
    exti__free(chain);
    return rc;
}

static bool is_system(const struct exti_closure_state *s, const char *name)
{
    return s->ops->is_system && s->ops->is_system(name);
}

/* The node of the file that a look-up finds, or EXTI_NO_NODE. */
static int find_file(struct exti_closure_graph *g, size_t node, const char *name, size_t *out,
                     bool *system, struct exti_error *err)
{
    char *path = NULL;
    int rc = search(g, node, name, &path, err);

    if (!rc && path && is_system(g->state, path))
        *system = true;
    else if (!rc && path)
        rc = node_of(g, path, node, false, out, err);
    exti__free(path);
    return rc;
}

/* The node that `node` gets for `name`, or EXTI_NO_NODE; *system: what is part of the system. */
static int find(struct exti_closure_graph *g, size_t node, const char *name, size_t *out,
                bool *system, struct exti_error *err)
{
    const struct exti_closure_state *s = g->state;
    char *known = NULL;
    int rc = s->ops->loaded_name(s->search, g->nodes[node].path, name, &known, err);

    *system = false;
    *out = EXTI_NO_NODE;
    if (!rc && is_api(g, name))
        *out = g->api;
    else if (!rc && is_system(s, name))
        *system = true;
    else if (!rc && known)
        *out = find_loaded(g, known);
    if (!rc && *out == EXTI_NO_NODE && !*system) {
        rc = find_file(g, node, name, out, system, err);
        if (!rc && *out != EXTI_NO_NODE && known && s->ops->remembers)
            rc = add_alias(s->ops, &g->nodes[*out], known, err);
    }
    exti__free(known);
    return rc;
}

/* What stops a loader stops one look-up here, for the caller to tell; only memory stops the walk. */
static int resolve(struct exti_closure_graph *g, size_t node, struct exti_closure_need *need,
                   struct exti_error *err)
{
    struct exti_error why = {0};
    int rc = find(g, node, need->name, &need->node, &need->system, &why);

    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    if (need->system)
        return 0;
    if (need->node != EXTI_NO_NODE)
        return load(g, need->node, err);
    need->problem = exti__strdup(rc ? why.message : "is in none of the folders that are searched");
    return need->problem ? 0 : exti__fail_nomem(err);
}

/* Goes on from the files loaded so far, with what they need; those from `fresh` on are new. */
static int walk_on(struct exti_closure_graph *g, size_t fresh, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < g->state->loaded_count && !rc; i++) {
        const size_t node = g->state->loaded[i];
        struct exti_closure_need *needs = g->nodes[node].needs;

        for (size_t k = 0; k < g->nodes[node].need_count && !rc; k++) {
            if (node >= fresh)
                rc = resolve(g, node, &needs[k], err);
            else if (needs[k].node != EXTI_NO_NODE)
                rc = load(g, needs[k].node, err);
        }
    }
    return rc;
}

/* ---- files that are added ----------------------------------------------------------------------- */

/* By which names copies find what is shared. */
static int tell_names(struct exti_closure_graph *g, size_t fresh, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = fresh; i < g->count && !rc; i++) {
        const struct exti_requester from = requester(&g->nodes[i]);

        for (size_t k = 0; k < g->nodes[i].need_count && !rc; k++) {
            struct exti_closure_need *need = &g->nodes[i].needs[k];

            if (need->node != EXTI_NO_NODE && !g->nodes[need->node].isolated)
                rc = g->state->ops->by_name(g->state->search, &from, need->name,
                                            &g->nodes[need->node].id, &need->by_name, err);
        }
    }
    return rc;
}

/* Whether new needs are missing is known once the walk cannot fail any more. */
static void count_missing(struct exti_closure_graph *g, size_t fresh)
{
    for (size_t i = fresh; i < g->count; i++)
        for (size_t k = 0; k < g->nodes[i].need_count; k++)
            if (g->nodes[i].needs[k].node == EXTI_NO_NODE && !g->nodes[i].needs[k].system) {
                g->missing += !g->nodes[i].needs[k].optional;
                g->missing_optional += g->nodes[i].needs[k].optional;
            }
}

/* In a process the API library is there before any other, and with it what it needs. */
static int start_walk(struct exti_closure_graph *g, struct exti_error *err)
{
    int rc;

    g->state->walk++;
    g->state->loaded_count = 0;
    if (g->api == EXTI_NO_NODE)
        return 0;
    rc = load(g, g->api, err);
    return rc ? rc : walk_on(g, g->count, err);
}

/* Walks from `node`, which is new, as all from `fresh` on. */
static int finish(struct exti_closure_graph *g, size_t node, size_t fresh, struct exti_error *err)
{
    int rc = load(g, node, err);

    if (!rc)
        rc = walk_on(g, fresh, err);
    if (rc)
        return rc;
    exti__closure_decide(g, fresh, g->state->mode, &g->state->policy);
    rc = tell_names(g, fresh, err);
    if (!rc)
        count_missing(g, fresh);
    return rc;
}

static int add(struct exti_closure_graph *g, const char *path, bool api, size_t *node,
               struct exti_error *err)
{
    const size_t fresh = g->count;
    int rc;

    if (!exti__path_is_absolute(path))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "'%s' is not an absolute path", path);
    rc = start_walk(g, err);
    if (!rc)
        rc = node_of(g, path, EXTI_NO_NODE, api, node, err);
    if (!rc && api)
        g->api = *node;
    if (!rc && g->count > fresh)
        rc = finish(g, *node, fresh, err);
    if (rc)
        forget(g, fresh);
    return rc;
}

int exti__closure_add(struct exti_closure_graph *g, const char *path, bool root, size_t *node,
                      struct exti_error *err)
{
    size_t found;
    int rc = add(g, path, false, &found, err);

    if (rc)
        return rc;
    g->nodes[found].root = g->nodes[found].root || root;
    *node = found;
    return 0;
}

int exti__closure_find(struct exti_closure_graph *g, size_t from, const char *name, size_t *node,
                       struct exti_error *err)
{
    const size_t fresh = g->count;
    size_t found;
    bool system;
    int rc = start_walk(g, err);

    if (!rc)
        rc = load(g, from, err);
    if (!rc)
        rc = walk_on(g, fresh, err);
    if (!rc)
        rc = find(g, from, name, &found, &system, err);
    if (!rc && g->count > fresh)
        rc = finish(g, found, fresh, err);
    if (rc)
        forget(g, fresh);
    else
        *node = found;
    return rc;
}

bool exti__closure_is_current(const struct exti_closure_graph *g, size_t node)
{
    const struct exti_file_id *old = &g->nodes[node].id;
    struct exti_file_id now;

    return !exti__fs_id(g->nodes[node].path, &now, NULL) && now.device == old->device &&
           now.inode == old->inode && now.size == old->size && now.mtime_ns == old->mtime_ns;
}

/* ---- the graph's life --------------------------------------------------------------------------- */

int exti__closure_init(struct exti_closure_graph *g, const struct exti_closure_opts *opts,
                       struct exti_error *err)
{
    struct exti_closure_state *s = exti__calloc(1, sizeof *s);
    size_t node;
    int rc = 0;

    if (!s)
        return exti__fail_nomem(err);
    *g = (struct exti_closure_graph){.api = EXTI_NO_NODE, .state = s};
    s->mode = opts->mode == EXTI_CLOSURE_DEFAULT ? EXTI_CLOSURE_ALL : opts->mode;
    s->quirks = opts->quirks;
    s->images = opts->images ? opts->images : &s->no_images;
    s->policy = (struct exti_policy){.rules = opts->rules,
                                     .rule_count = opts->rule_count,
                                     .share_by_default = s->mode != EXTI_CLOSURE_ALL};
    s->search = opts->search;
    if (opts->api_library)
        rc = add(g, opts->api_library, true, &node, err);
    if (rc)
        exti__closure_close(g);
    return rc;
}

void exti__closure_close(struct exti_closure_graph *g)
{
    struct exti_closure_state *s = g->state;

    for (size_t i = 0; i < g->count; i++)
        clear_node(&g->nodes[i]);
    exti__free(g->nodes);
    if (s) {
        exti__tree_free(&s->files, file_order, exti__free);
        if (s->own)
            s->ops->close(s->own);
        exti__free(s->api_names);
        exti__free(s->api_text);
        exti__free(s->loaded);
    }
    exti__free(s);
    *g = (struct exti_closure_graph){.api = EXTI_NO_NODE};
}
