/* Which image a name means, and which definition a symbol binds to.
 *
 * Everything that this loader assumes about dyld's look-ups, with its place in dyld's published
 * sources (dyld-1378 unless another is named).  None of it was observed on a Mac.
 *
 * Images:
 * - NAME is already loaded if it is the path of a loaded image, or the install name of a dylib
 *   that was loaded from another path (JustInTimeLoader.cpp, matchesPath()).
 * - @rpath/X is compared with the names of all loaded images first, then searched in the
 *   LC_RPATHs of the requesting image and of the main program (Loader.cpp, getLoader(),
 *   forEachResolvedAtPathVar()).
 * - @loader_path/X and @executable_path/X are in the folder of the requesting image or of the
 *   main program (as above).
 * - Any path is compared with all loaded images before the file is looked for (getLoader(),
 *   "already-loaded-by-path").
 * - A file with the inode, device and modification time of a loaded one is that one (getLoader(),
 *   "already-loaded-by-inode-mtime").
 * - Load order: a file, then its libraries, then theirs (JustInTimeLoader.cpp, loadDependents()).
 * - RTLD_LOCAL hides the opened image alone, not its dependencies; a later dlopen without it
 *   shows the image again (DyldAPIs.cpp, dlopen_from(), depOptions.rtldLocal).
 *
 * Symbols, by ordinal (Loader.cpp, resolveSymbol()):
 *   N > 0      the N-th library and what it re-exports
 *   0, SELF    the image itself and what it re-exports
 *   -1, MAIN   the main program and what it re-exports (hasExportedSymbol(staticLink))
 *   -2, FLAT   the first image in load order that exports the name itself, without hidden ones
 *              except for the requesting image (hasExportedSymbol(shallow))
 *   -3, WEAK   the same among images with MH_WEAK_DEFINES, without hidden ones even if they are
 *              the requesting image ("weak coalescing ignores hidden images"); a strong
 *              definition wins over an earlier weak one; if there is none, a hidden image's own
 *   others     an error
 * If nothing is found, a weak import is NULL, an entry of the weak stream leaves its slot
 * unchanged (forEachBindTarget()), and anything else is an error. */
#include "tests/macho_inputs/loader/load.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct image *loaded[256];
size_t loaded_count;
struct image *main_image;

/* ---- images ---------------------------------------------------------------------------------- */

struct image *find_loaded(const char *path)
{
    for (size_t i = 0; i < loaded_count; i++) {
        struct image *im = loaded[i];

        if (strcmp(im->path, path) == 0)
            return im;
        if (im->id && strcmp(im->id, path) == 0)
            return im;
    }
    return NULL;
}

static struct image *find_same_file(const struct stat *st)
{
    uint64_t mtime = (uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;

    for (size_t i = 0; i < loaded_count; i++)
        if (loaded[i]->inode == st->st_ino && loaded[i]->device == st->st_dev &&
            loaded[i]->mtime_ns == mtime)
            return loaded[i];
    return NULL;
}

static void only_slice(struct macho *m, void *user)
{
    struct macho **found = user;

    if (*found)
        die("%s: has two slices for this machine", m->path);
    *found = m;
}

static struct image *add_image(struct image *im, bool *is_new)
{
    if (loaded_count >= 256)
        die("%s: too many images", im->path);
    loaded[loaded_count++] = im;
    *is_new = true;
    return im;
}

/* The image for a path without @; NULL where there is no such file. */
static struct image *at_path(const char *path, bool *is_new)
{
    char real[PATH_MAX];
    struct macho *m = NULL;
    struct stat st;
    struct image *im = find_loaded(path);

    if (im)
        return im;
    if ((im = system_library(path)) != NULL)
        return add_image(im, is_new);
    if (stat(path, &st) != 0)
        return NULL;
    if ((im = find_same_file(&st)) != NULL)
        return im;
    if (!realpath(path, real))
        die("%s: has no real path", path);
#ifdef __x86_64__
    each_slice(strdup(real), "x86_64", only_slice, &m);
#else
    each_slice(strdup(real), "arm64", only_slice, &m);
#endif
    if (!m)
        die("%s: has no slice for this machine", path);
    im = map_image(m);
    im->inode = st.st_ino;
    im->device = st.st_dev;
    im->mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    return add_image(im, is_new);
}

static struct image *beside(const struct image *im, const char *rest, bool *is_new)
{
    char path[2 * PATH_MAX];
    const char *slash = strrchr(im->path, '/');

    snprintf(path, sizeof path, "%.*s/%s", slash ? (int)(slash - im->path) : 0, im->path, rest);
    return at_path(path, is_new);
}

static struct image *at_any_path(const struct image *from, const char *path, bool *is_new)
{
    if (strncmp(path, "@loader_path/", 13) == 0)
        return beside(from, path + 13, is_new);
    if (strncmp(path, "@executable_path/", 17) == 0)
        return beside(main_image, path + 17, is_new);
    return at_path(path, is_new);
}

static struct image *at_rpath(const struct image *from, const char *rest, bool *is_new)
{
    char path[2 * PATH_MAX];

    for (size_t i = 0; from->m && i < from->m->rpath_count; i++) {
        struct image *im;

        snprintf(path, sizeof path, "%s/%s", from->m->rpaths[i], rest);
        if ((im = at_any_path(from, path, is_new)) != NULL)
            return im;
    }
    return NULL;
}

struct image *image_of(struct image *from, const char *name, bool may_be_missing, bool *is_new)
{
    struct image *im;

    *is_new = false;
    if (strncmp(name, "@rpath/", 7) == 0) {
        im = find_loaded(name);
        if (!im)
            im = at_rpath(from, name + 7, is_new);
        if (!im)
            im = at_rpath(main_image, name + 7, is_new);
    } else {
        im = at_any_path(from, name, is_new);
    }
    if (!im && !may_be_missing)
        die("Library not loaded: %s, referenced from %s", name, from->path);
    return im;
}

/* ---- symbols --------------------------------------------------------------------------------- */

static bool host_exports(const struct image *im, const char *symbol, uint8_t **address,
                         bool *weak_def)
{
    for (const struct host_symbol *s = im->host; s && s->name; s++) {
        if (strcmp(s->name, symbol) == 0) {
            *address = s->address;
            *weak_def = s->weak_def;
            return true;
        }
    }
    return false;
}

static bool exported(struct image *im, const struct export *e, const char *symbol,
                     uint8_t **address, bool *weak_def)
{
    if (e->flags & 8) {
        if (e->other == 0 || e->other > im->m->dylib_count)
            die("%s: re-exports %s from library %llu", im->path, symbol,
                (unsigned long long)e->other);
        return im->deps[e->other - 1] &&
               image_exports(im->deps[e->other - 1], *e->import_name ? e->import_name : symbol,
                             true, address, weak_def);
    }
    if (e->flags & 0x10)
        die("%s: %s has a resolver", im->path, symbol);
    *address = (e->flags & 3) == 2 ? (uint8_t *)(uintptr_t)e->address : im->base + e->address;
    *weak_def = e->flags & 4;
    return true;
}

bool image_exports(struct image *im, const char *symbol, bool with_reexports, uint8_t **address,
                   bool *weak_def)
{
    struct export e;

    if (!im->m)
        return host_exports(im, symbol, address, weak_def);
    if (find_export(im->m, symbol, &e))
        return exported(im, &e, symbol, address, weak_def);
    for (size_t i = 0; with_reexports && i < im->m->dylib_count; i++)
        if (im->m->dylibs[i].kind == REEXPORT && im->deps[i] &&
            image_exports(im->deps[i], symbol, true, address, weak_def))
            return true;
    return false;
}

static bool find_flat(struct image *im, const char *symbol, uint8_t **address)
{
    bool weak_def;

    for (size_t i = 0; i < loaded_count; i++)
        if ((!loaded[i]->hidden || loaded[i] == im) &&
            image_exports(loaded[i], symbol, false, address, &weak_def))
            return true;
    return false;
}

static bool find_weak(struct image *im, const char *symbol, uint8_t **address)
{
    bool found = false, found_weak = false;

    for (size_t i = 0; i < loaded_count; i++) {
        uint8_t *here;
        bool weak_def;

        if (!loaded[i]->weak_defines || loaded[i]->hidden ||
            !image_exports(loaded[i], symbol, false, &here, &weak_def))
            continue;
        if (!found || (found_weak && !weak_def)) {
            *address = here;
            found_weak = weak_def;
        }
        found = true;
    }
    if (!found && im->hidden)
        found = image_exports(im, symbol, false, address, &found_weak);
    return found;
}

uint8_t *resolve(struct image *im, const struct import *import)
{
    struct image *target = NULL;
    uint8_t *address = NULL;
    bool found, weak_def;

    if (import->ordinal == FLAT) {
        found = find_flat(im, import->symbol, &address);
    } else if (import->ordinal == WEAK) {
        found = find_weak(im, import->symbol, &address);
    } else {
        if (import->ordinal > 0 && (size_t)import->ordinal <= im->m->dylib_count)
            target = im->deps[import->ordinal - 1];
        else if (import->ordinal == SELF)
            target = im;
        else if (import->ordinal == MAIN)
            target = main_image;
        else
            die("unknown library ordinal %d in %s when binding '%s'", import->ordinal, im->path,
                import->symbol);
        found = target && image_exports(target, import->symbol, true, &address, &weak_def);
    }
    if (!found && !import->weak && !import->weak_stream)
        die("Symbol not found: %s, referenced from %s, expected in %s", import->symbol, im->path,
            target                    ? target->path
            : import->ordinal == FLAT ? "the flat namespace"
            : import->ordinal == WEAK ? "the weak definitions"
                                      : "a library that is missing");
    return found ? address : NULL;
}
