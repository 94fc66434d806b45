#include "loader/store/stable_abi.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_folder.h"
#include "base/os/fs_id.h"
#include "base/path.h"
#include "loader/image/exports.h"
#include "loader/resolve/stable_abi_name.h"
#include "loader/store/manifest_api.h"

/* ---- which symbols a file imports from it ---- */

/* Calls `each` with every symbol that `im` imports from python3.dll or forwards to it, until
 * `each` returns non-zero; returns that. */
static int each_use(const struct exti_manifest *m, const struct exti_image *im,
                    int (*each)(void *user, const char *symbol, struct exti_error *err), void *user,
                    struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < im->info.symbol_count; i++) {
        const struct exti_image_symbol *s = &im->symbols[i];
        char library[EXTI_FILE_NAME_MAX + 1];
        const char *symbol;

        if (!(s->flags & EXTI_SYM_EXPORT)) {
            if (s->library > 0 && exti__manifest_is_stable_abi(m, im->needed[s->library - 1].name))
                rc = each(user, s->name, err);
        } else if (s->forward) {
            symbol = exti__forward_split(s->forward, library);
            if (symbol && exti__manifest_is_stable_abi(m, library))
                rc = each(user, symbol, err);
        }
    }
    return rc;
}

/* A file and its exports, read when first asked for. */
struct provider {
    const char *path;
    struct exti_image *im;
    struct exti_exports exports;
};

static int open_provider(struct provider *p, struct exti_error *err)
{
    int rc;

    if (p->im)
        return 0;
    rc = exti_inspect(p->path, &p->im, err);
    return rc ? rc : exti__exports_of(p->im, &p->exports, err);
}

static void close_provider(struct provider *p)
{
    exti__exports_free(&p->exports);
    exti_image_free(p->im);
}

#define WANTED 1 /* no error code: ends the search */

struct want {
    struct provider api;
    const char *symbol;
};

static int find_wanted(void *user, const char *symbol, struct exti_error *err)
{
    struct want *w = user;
    int rc = symbol[0] == '#' ? 0 : open_provider(&w->api, err);

    if (rc)
        return rc;
    w->symbol = symbol;
    return symbol[0] == '#' || !exti__exports_find(&w->api.exports, symbol) ? WANTED : 0;
}

int exti__stable_abi_wanted(const struct exti_manifest *m, const struct exti_image *im,
                            const char **symbol, struct exti_error *err)
{
    struct want w = {.api = {.path = m->api.source}};
    int rc = each_use(m, im, find_wanted, &w, err);

    close_provider(&w.api);
    *symbol = rc == WANTED ? w.symbol : NULL;
    return rc == WANTED ? 0 : rc;
}

/* ---- the file to copy ---- */

struct search {
    const char *name;
    char found[32];
};

/* Of several names that differ only in case takes the first in order, whatever the folder's
 * order. */
static int match_name(void *user, const char *name)
{
    struct search *s = user;

    if (strcasecmp(name, s->name) == 0 && (!s->found[0] || strcmp(name, s->found) < 0))
        snprintf(s->found, sizeof s->found, "%s", name);
    return 0;
}

int exti__stable_abi_source(const struct exti_manifest *m, const char *symbol, char **out,
                            struct exti_error *err)
{
    const struct exti_entry *e = exti__manifest_stable_abi(m);
    struct search s = {.name = exti__stable_abi_name_for(m->api.source, m->api.source_name)};
    char *path;
    int rc = 0;

    path = exti__strdup(e ? e->source : m->api.source);
    if (path && !e) {
        path[exti__base_name(path) - path] = 0;
        rc = exti__fs_list(path, match_name, &s, err);
        *out = exti__path_join(path, s.found);
        exti__free(path);
        path = *out;
    }
    if (!path)
        return exti__fail_nomem(err);
    if (!rc && !e && !s.found[0])
        rc = exti__fail(
            err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
            "imports '%.64s' from %s, and %s does not export that name: the context needs "
            "a copy of %s, which is not beside it; copy that file first",
            symbol, s.name, m->api.source, s.name);
    if (!rc)
        rc = exti__fs_realpath(path, out, err);
    if (!rc && !exti__manifest_is_stable_abi(m, exti__base_name(*out))) {
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                        "imports '%.64s' from %s, but %s is a link to %s, which has another name; "
                        "put the file itself there",
                        symbol, s.name, path, *out);
        exti__free(*out);
    }
    exti__free(path);
    return rc;
}

/* ---- what it forwards to ---- */

int exti__stable_abi_check(const struct exti_manifest *m, const struct exti_image *im,
                           struct exti_error *err)
{
    const char *other = NULL;
    size_t right = 0;

    for (size_t i = 0; i < im->info.symbol_count; i++) {
        const struct exti_image_symbol *s = &im->symbols[i];
        char library[EXTI_FILE_NAME_MAX + 1];

        if (!exti__is_forwarder(s, library))
            continue;
        if (exti__manifest_is_stable_abi(m, library))
            return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                              "forwards '%.64s' to %.100s, which is python3.dll again", s->name,
                              s->forward);
        if (exti__manifest_is_api(m, library))
            right++;
        else
            other = s->forward;
    }
    if (right)
        return 0;
    return exti__fail(
        err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
        "does not forward to %s%s%.100s; use the python3.dll that came with that file",
        exti__base_name(m->api.source), other ? ", but to " : "", other ? other : "");
}

struct user {
    struct provider stable, api;
};

static int check_use(void *user, const char *symbol, struct exti_error *err)
{
    struct user *u = user;
    const struct exti_image_symbol *s = exti__exports_find(&u->stable.exports, symbol);
    char library[EXTI_FILE_NAME_MAX + 1];
    const char *there;

    if (!s)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "imports '%.64s' from python3.dll, but neither %s nor %s exports it",
                          symbol, u->stable.path, u->api.path);
    there = s->forward ? exti__forward_split(s->forward, library) : NULL;
    if (!there || exti__exports_find(&u->api.exports, there))
        return 0;
    return exti__fail(
        err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
        "imports '%.64s' from python3.dll, which forwards it to %.128s, but %s does not "
        "export that",
        symbol, s->forward, u->api.path);
}

int exti__stable_abi_check_user(const struct exti_manifest *m, const struct exti_image *im,
                                struct exti_error *err)
{
    const struct exti_entry *e = exti__manifest_stable_abi(m);
    struct user u = {.stable = {.path = e->source}, .api = {.path = m->api.source}};
    int rc = open_provider(&u.stable, err);

    if (!rc)
        rc = open_provider(&u.api, err);
    if (!rc)
        rc = each_use(m, im, check_use, &u, err);
    close_provider(&u.stable);
    close_provider(&u.api);
    return rc;
}
