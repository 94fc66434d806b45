/* Mach-O: dyld's rules, dyld(1) and Loader.cpp, as far as files alone tell.  What only a process
 * knows does not count: the program and its LC_RPATHs, the current folder, DYLD_LIBRARY_PATH and
 * the like. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/text.h"
#include "loader/image/install_name.h"
#include "loader/image/machines.h"
#include "loader/resolve/absent.h"
#include "loader/resolve/api_name.h"
#include "loader/resolve/search_macho.h"

static bool macho_same_name(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Only the system has libraries in these folders, and most of them exist in dyld's shared cache
 * alone. */
static bool macho_is_system(const char *name)
{
    return exti__starts_with(name, "/usr/lib/") || exti__starts_with(name, "/System/");
}

/* Before it looks for a file, dyld compares absolute paths and "@rpath/..." with the install names
 * of the loaded libraries. */
static int macho_loaded_name(const struct exti_search *s, const char *path, const char *name,
                             char **out, struct exti_error *err)
{
    (void)s;
    (void)path;
    *out = NULL;
    if (exti__starts_with(name, EXTI_LOADER_PATH) || exti__starts_with(name, EXTI_EXECUTABLE_PATH))
        return 0;
    *out = exti__strdup(name);
    return *out ? 0 : exti__fail_nomem(err);
}

/* ---- one look-up ---- */

struct lookup {
    const struct exti_requester *from;
    char *found;           /* owned; the answer */
    char *system;          /* owned; the answer if no file is found: a path of the system's */
    int rc;                /* of the first file that could not be used */
    struct exti_error why; /* likewise */
};

static int check_machine(const struct exti_image *im, const char *machines, struct exti_error *err)
{
    char own[EXTI_MACHINES_MAX];

    if (im->format != EXTI_FORMAT_MACHO)
        return exti__fail(err, EXTI_E_FORMAT, 0, "is in the search path but is not a Mach-O file");
    exti__machines_of(im, own);
    if (exti__machines_meet(own, machines))
        return 0;
    return exti__fail(err, EXTI_E_UNSUPPORTED, 0, "is for %s, not %s", own, machines);
}

/* Takes `path`.  dyld passes over a file that it cannot use, and reports it only if it finds no
 * other. */
static int try_file(struct lookup *l, char *path, struct exti_error *err)
{
    struct exti_error why = {0};
    struct exti_image *im = NULL;
    int rc;

    if (macho_is_system(path)) {
        if (l->system)
            exti__free(path);
        else
            l->system = path;
        return 0;
    }
    rc = exti_inspect(path, &im, &why);
    if (!rc)
        rc = check_machine(im, l->from->machines, &why);
    exti_image_free(im);
    if (!rc) {
        l->found = path;
        return 0;
    }
    exti__error_file(&why, path);
    exti__free(path);
    if (exti__is_unseen(rc, &why) && !exti__is_forbidden(rc, &why)) {
        if (err)
            *err = why;
        return rc;
    }
    if (!l->rc && !(rc == EXTI_E_IO && exti__is_absent(why.os_error))) {
        l->rc = rc;
        l->why = why;
    }
    return 0;
}

/* `path` may start with "@loader_path/", the folder of `owner`. */
static int try_path(struct lookup *l, const struct exti_requester *owner, const char *path,
                    struct exti_error *err)
{
    char *file;
    int rc = exti__install_name_expand(owner->real ? owner->real : owner->path, path, &file, err);

    return rc || !file ? rc : try_file(l, file, err);
}

/* Tries `rest` in one LC_RPATH, which may be "@loader_path" without a slash. */
static int try_rpath(struct lookup *l, const struct exti_requester *owner, const char *rpath,
                     const char *rest, struct exti_error *err)
{
    const size_t rest_size = strlen(rest) + 1;
    size_t n = strlen(rpath);
    char *path = exti__alloc(n + 1 + rest_size);
    int rc;

    if (!path)
        return exti__fail_nomem(err);
    memcpy(path, rpath, n);
    while (n && path[n - 1] == '/')
        n--;
    path[n] = '/';
    memcpy(path + n + 1, rest, rest_size);
    rc = try_path(l, owner, path, err);
    exti__free(path);
    return rc;
}

/* Tries the LC_RPATHs of the file, then those of the file that it was loaded for, and so on. */
static int try_rpaths(struct lookup *l, const char *rest, struct exti_error *err)
{
    int rc = 0;

    for (const struct exti_requester *r = l->from; r; r = r->loader)
        for (size_t i = 0; i < r->path_count && !rc && !l->found; i++)
            rc = try_rpath(l, r, r->paths[i], rest, err);
    return rc;
}

static int fail_unknown(const char *name, struct exti_error *err)
{
    if (exti__starts_with(name, EXTI_EXECUTABLE_PATH))
        return exti__fail(
            err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
            "starts with @executable_path, the folder of a program that is not known here");
    return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                      "is a relative path, which depends on the current folder at load time");
}

static int macho_find(const struct exti_search *s, const struct exti_requester *from,
                      const char *name, char **out, struct exti_error *err)
{
    struct lookup l = {.from = from};
    int rc;

    (void)s;
    if (exti__starts_with(name, EXTI_RPATH))
        rc = try_rpaths(&l, name + strlen(EXTI_RPATH), err);
    else if (name[0] == '/' || exti__starts_with(name, EXTI_LOADER_PATH))
        rc = try_path(&l, from, name, err);
    else
        return fail_unknown(name, err);
    if (!rc && !l.found && !l.system && l.rc) {
        rc = l.rc;
        if (err)
            *err = l.why;
    }
    if (!l.found && !rc) {
        *out = l.system;
        return 0;
    }
    exti__free(l.system);
    *out = l.found;
    return rc;
}

/* A copy names its original's folder, in its LC_RPATHs too, in full.  But it may be loaded for
 * another file than the original, so only the original's own LC_RPATHs count. */
static int macho_by_name(const struct exti_search *s, const struct exti_requester *from,
                         const char *name, const struct exti_file_id *file, bool *out,
                         struct exti_error *err)
{
    struct exti_error why = {0};
    struct exti_file_id id = {0};
    char *path = NULL;
    int rc = macho_find(s, from, name, &path, &why);

    if (!rc && path)
        rc = exti__fs_id(path, &id, &why);
    *out = !rc && path && id.device == file->device && id.inode == file->inode;
    exti__free(path);
    if (!exti__is_unseen(rc, &why) || exti__is_forbidden(rc, &why))
        return 0;
    if (err)
        *err = why;
    return rc;
}

const struct exti_search_ops *exti__search_macho(void)
{
    static const struct exti_search_ops ops = {
        .format = EXTI_FORMAT_MACHO,
        .same_name = macho_same_name,
        .is_api = exti__is_api_name,
        .is_system = macho_is_system,
        .loaded_name = macho_loaded_name,
        .find = macho_find,
        .by_name = macho_by_name,
    };

    return &ops;
}
