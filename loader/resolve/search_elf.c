/* ELF: glibc's rules, ld.so(8), for an object that dlopen opens. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/path.h"
#include "loader/resolve/absent.h"
#include "loader/resolve/api_name.h"
#include "loader/resolve/elf_kind.h"
#include "loader/resolve/search_elf.h"
#include "loader/resolve/search_elf_state.h"
#include "loader/resolve/search_host.h"
#include "loader/resolve/string_tokens.h"

/* ---- folders ---- */

/* One look-up. */
struct lookup {
    const struct exti_search *s;
    const char *name;
    struct exti_elf_kind kind;
    char *found;                 /* owned; the answer */
    struct exti_error forbidden; /* the first file that could not be read; code 0: none */
};

/* Makes `path` the answer if a file for the right machine is there. */
static int try_file(struct lookup *l, const char *path, struct exti_error *err)
{
    struct exti_error e = {0};
    struct exti_mapping m;
    struct exti_elf_kind kind;
    int rc = exti__fs_map_head(path, EXTI_ELF_KIND_BYTES, &m, &e);

    if (exti__is_forbidden(rc, &e)) {
        if (!l->forbidden.code)
            l->forbidden = e;
        return 0;
    }
    if (rc == EXTI_E_IO && exti__is_absent(e.os_error))
        return 0;
    if (rc) {
        if (err)
            *err = e;
        return rc;
    }
    rc = exti__elf_kind(exti__span(m.p, m.n), &kind, err);
    exti__fs_unmap(&m);
    if (rc)
        exti__error_file(err, path);
    if (rc || kind.class != l->kind.class || kind.data != l->kind.data ||
        kind.machine != l->kind.machine)
        return rc;
    l->found = exti__strdup(path);
    return l->found ? 0 : exti__fail_nomem(err);
}

/* Tries "dir/name"; an empty `dir` is the current folder. */
static int try_in(struct lookup *l, const char *dir, const char *name, struct exti_error *err)
{
    char *path = *dir ? exti__path_join(dir, name) : exti__strdup(name);
    int rc;

    if (!path)
        return exti__fail_nomem(err);
    rc = try_file(l, path, err);
    exti__free(path);
    return rc;
}

static int try_sub(struct lookup *l, const char *dir, const char *sub, struct exti_error *err)
{
    char *path = exti__path_join(*dir ? dir : ".", sub);
    int rc = path ? try_in(l, path, l->name, err) : exti__fail_nomem(err);

    exti__free(path);
    return rc;
}

static int try_hwcap(struct lookup *l, const char *dir, const char *hwcap, struct exti_error *err)
{
    char *sub = exti__path_join("glibc-hwcaps", hwcap);
    int rc = sub ? try_sub(l, dir, sub, err) : exti__fail_nomem(err);

    exti__free(sub);
    return rc;
}

static int try_dir(struct lookup *l, const char *dir, struct exti_error *err)
{
    int rc = 0;

    for (char **h = l->s->hwcaps; *h && !rc && !l->found; h++)
        rc = try_hwcap(l, dir, *h, err);
    for (char **sub = l->s->legacy; *sub && !rc && !l->found; sub++)
        rc = try_sub(l, dir, *sub, err);
    return rc || l->found ? rc : try_in(l, dir, l->name, err);
}

/* Tries one entry of a search path of `owner`.  ld.so takes an empty entry for the current folder,
 * but skips one that only its tokens make empty. */
static int try_entry(struct lookup *l, char *entry, const char *owner, struct exti_error *err)
{
    char *dir;
    size_t n;
    int rc;

    if (!*entry)
        return try_dir(l, entry, err);
    rc = exti__expand_tokens(l->s, owner, entry, &dir, err);
    if (rc || !dir)
        return rc;
    for (n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
        dir[n - 1] = 0;
    rc = *dir ? try_dir(l, dir, err) : 0;
    exti__free(dir);
    return rc;
}

static int try_path(struct lookup *l, const char *path, const char *separators, const char *owner,
                    struct exti_error *err)
{
    char *text, *p, *next;
    int rc = 0;

    if (!path || !*path)
        return 0;
    text = exti__strdup(path);
    if (!text)
        return exti__fail_nomem(err);
    for (p = text; p && !rc && !l->found; p = next) {
        next = strpbrk(p, separators);
        if (next)
            *next++ = 0;
        rc = try_entry(l, p, owner, err);
    }
    exti__free(text);
    return rc;
}

/* ---- the order of the folders ---- */

/* ld.so ignores the DT_RPATH of a file that has DT_RUNPATH. */
static int try_rpaths(struct lookup *l, const struct exti_requester *from, struct exti_error *err)
{
    int rc = 0;

    if (from->runpath)
        return 0;
    for (; from && !rc && !l->found; from = from->loader)
        if (!from->runpath)
            rc = try_path(l, from->rpath, ":", from->path, err);
    if (!rc && !l->found)
        rc = try_path(l, l->s->program_rpath, ":", l->s->program_path, err);
    return rc;
}

static bool is_default(const struct exti_search *s, const char *path)
{
    for (char **d = s->dirs; *d; d++)
        if (exti__path_is_below(path, *d))
            return true;
    return false;
}

static int try_cache(struct lookup *l, bool no_default, struct exti_error *err)
{
    const char *path = NULL;
    int rc = exti__ld_cache_find(&l->s->cache, l->name, exti__elf_kind_in_cache(l->kind),
                                 (const char *const *)l->s->hwcaps, &path, err);

    if (rc || !path || (no_default && is_default(l->s, path)))
        return rc;
    return try_file(l, path, err);
}

static int search_default(struct lookup *l, bool no_default, struct exti_error *err)
{
    int rc = try_cache(l, no_default, err);

    for (char **d = l->s->dirs; *d && !rc && !l->found && !no_default; d++)
        rc = try_dir(l, *d, err);
    return rc;
}

/* The last step: the cache, then the default folders. */
static int try_default(struct lookup *l, const struct exti_requester *from, struct exti_error *err)
{
    const struct exti_default_query query = {l->name, l->kind, from->flags & EXTI_IMAGE_NODEFLIB};
    int rc;

    l->found = exti__default_memo_get(l->s->memo, &query);
    if (l->found)
        return 0;
    rc = search_default(l, query.no_default, err);
    if (!rc && l->found)
        exti__default_memo_put(l->s->memo, &query, l->found);
    return rc;
}

static int try_all(struct lookup *l, const struct exti_requester *from, struct exti_error *err)
{
    const struct exti_search *s = l->s;
    int rc = try_rpaths(l, from, err);

    if (!rc && !l->found)
        rc = try_path(l, s->library_path, ":;", s->program_path, err);
    if (!rc && !l->found)
        rc = try_path(l, from->runpath, ":", from->path, err);
    return rc || l->found ? rc : try_default(l, from, err);
}

/* The loader is loaded already, under its path and its file name. */
static bool is_loader(const struct exti_search *s, const char *name)
{
    const char *slash = s->loader ? exti__path_last_slash(s->loader) : NULL;

    return s->loader && (strcmp(name, s->loader) == 0 || (slash && strcmp(name, slash + 1) == 0));
}

int exti__elf_search_find(const struct exti_search *s, const struct exti_requester *from,
                          const char *name, char **out, struct exti_error *err)
{
    struct lookup l = {.s = s, .kind = from->kind};
    char *expanded;
    int rc = exti__expand_tokens(s, from->path, name, &expanded, err);

    if (rc)
        return rc;
    if (expanded && *expanded) {
        l.name = expanded;
        if (is_loader(s, expanded))
            rc = try_file(&l, s->loader, err);
        else if (strchr(expanded, '/'))
            rc = try_file(&l, expanded, err);
        else
            rc = try_all(&l, from, err);
    }
    exti__free(expanded);
    if (!rc && !l.found && l.forbidden.code) {
        rc = l.forbidden.code;
        if (err)
            *err = l.forbidden;
    }
    if (rc)
        exti__free(l.found);
    else
        *out = l.found;
    return rc;
}

/* Whether the look-up, which ended with `rc` and `why`, ended at `file`.  One at a file that cannot
 * be loaded did not. */
static int leads_to(int rc, struct exti_error *why, struct lookup *l,
                    const struct exti_file_id *file, bool *out, struct exti_error *err)
{
    struct exti_file_id id = {0};

    if (!rc && l->found)
        rc = exti__fs_id(l->found, &id, why);
    *out = !rc && l->found && id.device == file->device && id.inode == file->inode;
    exti__free(l->found);
    l->found = NULL;
    if (!exti__is_unseen(rc, why))
        return 0;
    if (err)
        *err = *why;
    return rc;
}

/* A copy has a DT_RUNPATH of its own, which makes ld.so ignore the DT_RPATHs of the files that load
 * it, unless the original has DT_RPATH, which the copy keeps. */
int exti__elf_search_by_name(const struct exti_search *s, const struct exti_requester *from,
                             const char *name, const struct exti_file_id *file, bool *out,
                             struct exti_error *err)
{
    struct exti_requester copy = *from;
    struct lookup l = {.s = s, .name = name, .kind = from->kind};
    struct exti_error why = {0};
    int rc;

    *out = exti__path_is_absolute(name) && !strchr(name, '$');
    if (strpbrk(name, "/$"))
        return 0;
    *out = is_loader(s, name);
    if (*out)
        return 0;
    rc = try_default(&l, from, &why);
    rc = leads_to(rc, &why, &l, file, out, err);
    if (rc || !*out || !(from->rpath || from->runpath || s->library_path))
        return rc;
    if (!from->rpath && !from->runpath)
        copy.runpath = "";
    rc = try_all(&l, &copy, &why);
    return leads_to(rc, &why, &l, file, out, err);
}

/* ---- the format's rules ---- */

static int elf_key(char **out, struct exti_error *err)
{
    struct exti_file_id id = {0};
    struct exti_error e = {0};
    char *path = NULL;
    size_t n;
    int rc = exti__fs_id("/etc/ld.so.cache", &id, &e);

    /* ld.so works without a cache that it cannot read. */
    if (exti__is_unseen(rc, &e) && !exti__is_forbidden(rc, &e)) {
        if (err)
            *err = e;
        return rc;
    }
    rc = exti__host_library_path(&path, err);
    if (rc)
        return rc;
    n = (path ? strlen(path) : 0) + 80;
    *out = exti__alloc(n);
    if (*out)
        snprintf(*out, n, "%" PRIu64 " %" PRId64 " %" PRIu64 " %s", id.size, id.mtime_ns, id.inode,
                 path ? path : "");
    exti__free(path);
    return *out ? 0 : exti__fail_nomem(err);
}

static bool elf_same_name(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

const struct exti_search_ops *exti__search_elf(void)
{
    static const struct exti_search_ops ops = {
        .format = EXTI_FORMAT_ELF,
        .open_running = exti__elf_search_open_running,
        .close = exti__elf_search_close,
        .key = elf_key,
        .kind = exti__elf_kind,
        .same_name = elf_same_name,
        .is_api = exti__is_api_name,
        .loaded_name = exti__expand_tokens,
        .remembers = true,
        .find = exti__elf_search_find,
        .by_name = exti__elf_search_by_name,
    };

    return &ops;
}
