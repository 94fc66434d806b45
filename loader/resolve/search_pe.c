/* PE: where Windows looks for the DLLs of one that is loaded as CPython loads extension modules, by
 * LoadLibraryExW(path, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR): among
 * those that are loaded, by the file's name alone, which is the closure's part; what the system
 * answers for by itself; the folder of the file that is loaded by its path, for those it drags in
 * too; the program's folder; folders that os.add_dll_directory has named; System32.
 *
 * The program is python.exe, beside the API library.  Which folders it will have named by then is
 * not told anywhere: those that packages are known to name as they are imported stand for them.
 * Those of other packages than the module's own come last, as nobody may have imported these: a
 * Visual C++ runtime of theirs is not to take the place of the system's. */
#include "base/os/path.h"
#include "loader/resolve/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/resolve/dll_name.h"
#include "loader/resolve/search_pe_priv.h"
#include "loader/resolve/stable_abi_name.h"

/* ---- what the system answers for, before all folders ---- */

/* The registry's list of KnownDLLs and what those need, of every Windows that CPython 3.9 runs on;
 * and the C library, for which API sets stand. */
static const char *const known[] = {
    "advapi32", "clbcatq", "combase",  "comdlg32", "coml2",  "gdi32",    "gdiplus",
    "imagehlp", "imm32",   "kernel32", "msctf",    "msvcrt", "normaliz", "nsi",
    "ntdll",    "ole32",   "oleaut32", "psapi",    "rpcrt4", "sechost",  "setupapi",
    "shcore",   "shell32", "shlwapi",  "ucrtbase", "user32", "wldap32",  "ws2_32",
};

/* One that imports from a program, as addons for Node.js do, is loaded by that. */
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

static bool is_system(const char *name)
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

/* Of several that differ in case the first by name, whatever the folder's order. */
static int is_it(void *user, const char *name)
{
    struct entry *e = user;

    if (strcasecmp(name, e->name) == 0 && strlen(name) < sizeof e->found &&
        (!e->found[0] || strcmp(name, e->found) < 0))
        memcpy(e->found, name, strlen(name) + 1);
    return 0;
}

/* A folder that is not there, or may not be looked into, has nothing. */
static int try_in(const char *dir, const char *name, char **out, struct exti_error *err)
{
    struct entry e = {.name = name};
    struct exti_file_id id;
    char *path = exti__path_join(dir, name);

    if (!path)
        return exti__fail_nomem(err);
    if (exti__fs_id(path, &id, NULL)) {
        exti__free(path);
        path = NULL;
        if (!exti__fs_list(dir, is_it, &e, NULL) && e.found[0]) {
            path = exti__path_join(dir, e.found);
            if (!path)
                return exti__fail_nomem(err);
            if (exti__fs_id(path, &id, NULL)) { /* a folder, say */
                exti__free(path);
                path = NULL;
            }
        }
    }
    *out = path;
    return 0;
}

/* ---- the folders that packages name ---- */

/* A path whose first `n` bytes are the folder at hand. */
struct climb {
    char *path, *probe; /* owned; `probe` has room for more */
    size_t n;
};

/* To the folder that it is in. */
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

static const char *here(struct climb *c, const char *more)
{
    memcpy(c->probe, c->path, c->n);
    memcpy(c->probe + c->n, more, strlen(more) + 1);
    return c->probe;
}

static bool is_site(struct climb *c)
{
    const char *base = exti__base_name(here(c, ""));

    return strcasecmp(base, "site-packages") == 0 || strcasecmp(base, "dist-packages") == 0;
}

static bool is_package(struct climb *c)
{
    struct exti_file_id id;

    return !exti__fs_id(here(c, "/__init__.py"), &id, NULL);
}

#define ROOM sizeof "/pywin32_system32"

static int begin(struct climb *c, const char *file, struct exti_error *err)
{
    c->n = strlen(file);
    c->path = exti__alloc(c->n + 1);
    c->probe = exti__alloc(c->n + ROOM);
    if (!c->path || !c->probe)
        return exti__fail_nomem(err);
    memcpy(c->path, file, c->n + 1);
    return 0;
}

static void end(struct climb *c)
{
    exti__free(c->path);
    exti__free(c->probe);
}

/* From a file to the folder of its top-level package, if it is in one; *site: that is in a folder
 * of packages, or the file is. */
static bool find_package(struct climb *c, const char *file, bool *site)
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

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In all folders "*.libs" of a folder of packages: delvewheel calls them by the distribution's
 * name, which need not be the package's. */
static int try_site(const char *site, const char *name, char **out, struct exti_error *err)
{
    struct names n = {0};
    int rc = 0;

    exti__fs_list(site, add_libs, &n, NULL);
    if (n.no_memory)
        rc = exti__fail_nomem(err);
    if (n.count)
        qsort(n.list, n.count, sizeof *n.list, by_text);
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

/* "numpy/.libs" of earlier ones, "torch/lib", "numpy.libs" beside "numpy". */
static int try_package(const char *file, const char *name, char **out, struct exti_error *err)
{
    static const char *const own[] = {"/.libs", "/lib", ".libs"};
    struct climb c = {0};
    bool site = false;
    int rc = begin(&c, file, err);

    if (!rc && find_package(&c, file, &site))
        for (size_t i = 0; i < sizeof own / sizeof *own && !rc && !*out; i++)
            rc = try_in(here(&c, own[i]), name, out, err);
    end(&c);
    return rc;
}

/* Those of other packages, and pywin32's own. */
static int try_others(const char *file, const char *name, char **out, struct exti_error *err)
{
    struct climb c = {0};
    bool site = false;
    int rc = begin(&c, file, err);

    if (!rc)
        find_package(&c, file, &site);
    if (!rc && site && climb(&c)) {
        rc = try_site(here(&c, ""), name, out, err);
        if (!rc && !*out)
            rc = try_in(here(&c, "/pywin32_system32"), name, out, err);
    }
    end(&c);
    return rc;
}

/* ---- the order of them ---- */

/* Beside the file `path`. */
static int try_beside(const char *path, const char *name, char **out, struct exti_error *err)
{
    struct climb c = {0};
    int rc = begin(&c, path, err);

    if (!rc && climb(&c))
        rc = try_in(here(&c, ""), name, out, err);
    end(&c);
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

static int look(const struct exti_requester *root, const char *name, char **out,
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

static int find(const struct exti_search *s, const struct exti_requester *from, const char *name,
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
    rc = look(from, file, &path, err);
    if (rc)
        exti__free(path);
    else
        *out = path;
    return rc;
}

/* ---- names ---- */

/* Loaded modules are known by their files' names. */
static bool same_name(const char *a, const char *b)
{
    return exti__same_dll(exti__base_name(a), exti__base_name(b));
}

static bool is_api(const char *name, const char *file, const char *id)
{
    const char *stable = exti__stable_abi_name_for(file, id);

    return same_name(name, file) || (id && same_name(name, id)) ||
           (stable && exti__is_stable_abi_name(exti__base_name(name), stable));
}

static int loaded_name(const struct exti_search *s, const char *path, const char *name, char **out,
                       struct exti_error *err)
{
    (void)s;
    (void)path;
    *out = exti__strdup(name);
    return *out ? 0 : exti__fail_nomem(err);
}

/* What is loaded by its path first is then found by its name, wherever it lies. */
static int by_name(const struct exti_search *s, const struct exti_requester *from, const char *name,
                   const struct exti_file_id *file, bool *out, struct exti_error *err)
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
                                               .same_name = same_name,
                                               .is_api = is_api,
                                               .is_system = is_system,
                                               .loaded_name = loaded_name,
                                               .by_file = true,
                                               .find = find,
                                               .by_name = by_name};

    return &ops;
}
