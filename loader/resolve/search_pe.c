/* PE: where Windows looks for the DLLs that an extension module needs, if CPython loads it by
 * LoadLibraryExW(path, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR).  In
 * this order: loaded modules of that file name, which is the closure's part; the system's known
 * DLLs; the folder of the file loaded by path, which counts for all that it needs; the program's
 * folder; the folders given to os.add_dll_directory; System32.
 *
 * The program is python.exe, beside the API library.  No file tells which folders a process has
 * added, so the folders that packages are known to add when they are imported stand for them.
 * Those of packages other than the module's own come last, as the process may not have imported
 * these packages: their Visual C++ runtime must not take the place of the system's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_folder.h"
#include "base/os/fs_id.h"
#include "base/path.h"
#include "loader/resolve/absent.h"
#include "loader/resolve/dll_name.h"
#include "loader/resolve/search_pe.h"
#include "loader/resolve/search_pe_system.h"
#include "loader/resolve/stable_abi_name.h"

/* ---- the system's own DLLs ---- */

/* The DLLs of the registry's KnownDLLs list and those that they need, on every Windows that CPython
 * 3.9 runs on; and the C library, for which API sets stand. */
static const char *const known[] = {
    "advapi32", "clbcatq", "combase",  "comdlg32", "coml2",  "gdi32",    "gdiplus",
    "imagehlp", "imm32",   "kernel32", "msctf",    "msvcrt", "normaliz", "nsi",
    "ntdll",    "ole32",   "oleaut32", "psapi",    "rpcrt4", "sechost",  "setupapi",
    "shcore",   "shell32", "shlwapi",  "ucrtbase", "user32", "wldap32",  "ws2_32",
};

/* Addons for Node.js import from the program that loads them, so ".exe" is there already. */
static bool is_known(const char *name)
{
    const size_t n = strlen(name);

    if (strncasecmp(name, "api-", 4) == 0 || strncasecmp(name, "ext-", 4) == 0 ||
        (n > 4 && strcasecmp(name + n - 4, ".exe") == 0))
        return true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (exti__same_dll(known[i], name))
            return true;
    return false;
}

static bool pe_is_system(const char *name)
{
    char folder[EXTI_PATH_MAX];
    size_t n;

    if (exti__path_is_plain_name(name))
        return is_known(name);
    exti__pe_system_folder(folder);
    n = strlen(folder);
    return strncasecmp(name, folder, n) == 0 && (name[n] == '/' || name[n] == '\\');
}

/* ---- one folder ---- */

struct entry {
    const char *name;
    char found[EXTI_FILE_NAME_MAX + 1];
};

/* Takes the first in strcmp order of names that differ in case only, whatever the order of the
 * folder. */
static int take_if_named(void *user, const char *name)
{
    struct entry *e = user;

    if (strcasecmp(name, e->name) == 0 && strlen(name) < sizeof e->found &&
        (!e->found[0] || strcmp(name, e->found) < 0))
        memcpy(e->found, name, strlen(name) + 1);
    return 0;
}

/* Fails if an error leaves open what there is; what the user may never read included, as Windows
 * reports that rather than to look elsewhere. */
static int fail_if_unseen(int rc, const struct exti_error *why, struct exti_error *err)
{
    if (!exti__is_unseen(rc, why))
        return 0;
    if (err)
        *err = *why;
    return rc;
}

/* Gives `path`, which it takes, if a file is there: not a folder, say. */
static int try_path(char *path, char **out, struct exti_error *err)
{
    struct exti_error why = {0};
    struct exti_file_id id;
    int rc;

    if (!path)
        return exti__fail_nomem(err);
    rc = exti__fs_id(path, &id, &why);
    if (!rc) {
        *out = path;
        return 0;
    }
    exti__free(path);
    return fail_if_unseen(rc, &why, err);
}

/* exti__fs_list.  A folder that is missing holds nothing. */
static int list_folder(const char *dir, int (*each)(void *user, const char *name), void *user,
                       struct exti_error *err)
{
    struct exti_error why = {0};
    int rc = exti__fs_list(dir, each, user, &why);

    return fail_if_unseen(rc, &why, err);
}

/* Finds dir/name in any case. */
static int try_in(const char *dir, const char *name, char **out, struct exti_error *err)
{
    struct entry e = {.name = name};
    int rc = try_path(exti__path_join(dir, name), out, err);

    if (!rc && !*out)
        rc = list_folder(dir, take_if_named, &e, err);
    return rc || *out || !e.found[0] ? rc : try_path(exti__path_join(dir, e.found), out, err);
}

/* ---- the folders that packages add ---- */

/* A path on which to climb from a file to its folders; the first `n` bytes are the current one. */
struct climb {
    char *path, *probe; /* owned; `probe` has room for more */
    size_t n;
    int rc; /* of the first look that failed; its error: */
    struct exti_error err;
};

/* Climbs to the parent folder. */
static bool climb(struct climb *c)
{
    const char *slash;

    c->path[c->n] = 0;
    slash = exti__path_last_slash(c->path);
    if (!slash || slash == c->path)
        return false;
    c->n = (size_t)(slash - c->path);
    return true;
}

static const char *path_here(struct climb *c, const char *more)
{
    memcpy(c->probe, c->path, c->n);
    memcpy(c->probe + c->n, more, strlen(more) + 1);
    return c->probe;
}

static bool is_site(struct climb *c)
{
    const char *base = exti__base_name(path_here(c, ""));

    return strcasecmp(base, "site-packages") == 0 || strcasecmp(base, "dist-packages") == 0;
}

static bool is_package(struct climb *c)
{
    struct exti_error why = {0};
    struct exti_file_id id;
    int rc = exti__fs_id(path_here(c, "/__init__.py"), &id, &why);

    if (!c->rc)
        c->rc = fail_if_unseen(rc, &why, &c->err);
    return !rc;
}

#define ROOM sizeof "/pywin32_system32"

static int climb_from(struct climb *c, const char *file, struct exti_error *err)
{
    c->n = strlen(file);
    c->path = exti__alloc(c->n + 1);
    c->probe = exti__alloc(c->n + ROOM);
    if (!c->path || !c->probe)
        return exti__fail_nomem(err);
    memcpy(c->path, file, c->n + 1);
    return 0;
}

static void climb_end(struct climb *c)
{
    exti__free(c->path);
    exti__free(c->probe);
}

static bool climb_to_package(struct climb *c, const char *file, bool *site)
{
    const size_t whole = c->n;
    size_t below = whole;

    *site = false;
    while (climb(c)) {
        *site = is_site(c);
        if (*site)
            break;
        below = c->n;
    }
    memcpy(c->path, file, whole);
    c->n = below;
    if (*site)
        return below < whole; /* else it is a module by itself */
    for (c->n = below = whole; climb(c) && is_package(c); below = c->n)
        ;
    memcpy(c->path, file, whole);
    c->n = below;
    return below < whole;
}

/* Climbs from a file to the folder of its top-level package; *found is false if it is in none.
 * *site: the package, or the file, is in site-packages or the like. */
static int find_package(struct climb *c, const char *file, bool *found, bool *site,
                        struct exti_error *err)
{
    *found = climb_to_package(c, file, site);
    if (c->rc && err)
        *err = c->err;
    return c->rc;
}

struct names {
    char **list; /* owned */
    size_t count;
    bool no_memory;
};

static int add_libs(void *user, const char *name)
{
    struct names *n = user;
    const size_t size = strlen(name);
    char **grown;

    if (size <= 5 || strcasecmp(name + size - 5, ".libs") != 0)
        return 0;
    grown = exti__realloc_array(n->list, n->count + 1, sizeof *grown);
    if (grown) {
        n->list = grown;
        grown[n->count] = exti__strdup(name);
    }
    n->no_memory = !grown || !grown[n->count];
    n->count += !n->no_memory;
    return n->no_memory;
}

static int libs_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Searches all folders "*.libs" of site-packages: delvewheel names them by the distribution, whose
 * name may not be the package's. */
static int try_site(const char *site, const char *name, char **out, struct exti_error *err)
{
    struct names n = {0};
    int rc = list_folder(site, add_libs, &n, err);

    if (n.no_memory)
        rc = exti__fail_nomem(err);
    if (n.count)
        qsort(n.list, n.count, sizeof *n.list, libs_order);
    for (size_t i = 0; i < n.count && !rc && !*out; i++) {
        char *dir = exti__path_join(site, n.list[i]);

        rc = dir ? try_in(dir, name, out, err) : exti__fail_nomem(err);
        exti__free(dir);
    }
    for (size_t i = 0; i < n.count; i++)
        exti__free(n.list[i]);
    exti__free(n.list);
    return rc;
}

/* The module's own package: "numpy/.libs" of older wheels, "torch/lib", "numpy.libs" beside
 * "numpy". */
static int try_package(const char *file, const char *name, char **out, struct exti_error *err)
{
    static const char *const own[] = {"/.libs", "/lib", ".libs"};
    struct climb c = {0};
    bool found = false, site;
    int rc = climb_from(&c, file, err);

    if (!rc)
        rc = find_package(&c, file, &found, &site, err);
    if (!rc && found)
        for (size_t i = 0; i < sizeof own / sizeof *own && !rc && !*out; i++)
            rc = try_in(path_here(&c, own[i]), name, out, err);
    climb_end(&c);
    return rc;
}

/* The folders of other packages, and pywin32's, which lies beside its package. */
static int try_others(const char *file, const char *name, char **out, struct exti_error *err)
{
    struct climb c = {0};
    bool found, site = false;
    int rc = climb_from(&c, file, err);

    if (!rc)
        rc = find_package(&c, file, &found, &site, err);
    if (!rc && site && climb(&c)) {
        rc = try_site(path_here(&c, ""), name, out, err);
        if (!rc && !*out)
            rc = try_in(path_here(&c, "/pywin32_system32"), name, out, err);
    }
    climb_end(&c);
    return rc;
}

/* ---- the order of the folders ---- */

/* Beside the file `path`. */
static int try_beside(const char *path, const char *name, char **out, struct exti_error *err)
{
    struct climb c = {0};
    int rc = climb_from(&c, path, err);

    if (!rc && climb(&c))
        rc = try_in(path_here(&c, ""), name, out, err);
    climb_end(&c);
    return rc;
}

static int try_system(const char *name, char **out, struct exti_error *err)
{
    char folder[EXTI_PATH_MAX];

    if (!exti__pe_system_has(name))
        return 0;
    exti__pe_system_folder(folder);
    *out = exti__path_join(folder, name);
    return *out ? 0 : exti__fail_nomem(err);
}

static int search_folders_of(const struct exti_requester *root, const char *name, char **out,
                             struct exti_error *err)
{
    int rc = try_beside(root->path, name, out, err);

    if (!rc && !*out && root->api)
        rc = try_beside(root->api, name, out, err);
    if (!rc && !*out)
        rc = try_package(root->path, name, out, err);
    if (!rc && !*out)
        rc = try_system(name, out, err);
    return rc || *out ? rc : try_others(root->path, name, out, err);
}

static int pe_find(const struct exti_search *s, const struct exti_requester *from, const char *name,
                   char **out, struct exti_error *err)
{
    char file[EXTI_FILE_NAME_MAX + 1];
    char *path = NULL;
    int rc;

    (void)s;
    *out = NULL;
    if (!exti__path_is_plain_name(name) || strlen(name) + 5 > sizeof file)
        return 0;
    snprintf(file, sizeof file, "%s%s", name, strchr(name, '.') ? "" : ".dll");
    while (from->loader)
        from = from->loader;
    rc = search_folders_of(from, file, &path, err);
    if (rc)
        exti__free(path);
    else
        *out = path;
    return rc;
}

/* ---- names ---- */

/* Windows knows loaded modules by their files' names. */
static bool pe_same_name(const char *a, const char *b)
{
    return exti__same_dll(exti__base_name(a), exti__base_name(b));
}

static bool pe_is_api(const char *name, const char *file, const char *id)
{
    const char *stable = exti__stable_abi_name_for(file, id);

    return pe_same_name(name, file) || (id && pe_same_name(name, id)) ||
           (stable && exti__is_stable_abi_name(exti__base_name(name), stable));
}

static int pe_loaded_name(const struct exti_search *s, const char *path, const char *name,
                          char **out, struct exti_error *err)
{
    (void)s;
    (void)path;
    *out = exti__strdup(name);
    return *out ? 0 : exti__fail_nomem(err);
}

/* A DLL that the context has loaded by its path is found by its name from any folder. */
static int pe_by_name(const struct exti_search *s, const struct exti_requester *from,
                      const char *name, const struct exti_file_id *file, bool *out,
                      struct exti_error *err)
{
    (void)s;
    (void)from;
    (void)name;
    (void)file;
    (void)err;
    *out = true;
    return 0;
}

const struct exti_search_ops *exti__search_pe(void)
{
    static const struct exti_search_ops ops = {.format = EXTI_FORMAT_PE,
                                               .same_name = pe_same_name,
                                               .is_api = pe_is_api,
                                               .is_system = pe_is_system,
                                               .loaded_name = pe_loaded_name,
                                               .by_file = true,
                                               .find = pe_find,
                                               .by_name = pe_by_name};

    return &ops;
}
