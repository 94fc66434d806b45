/* Gathers what ELF look-ups depend on: the options, and for the rest the running system's
 * answers. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "elf/elf_format.h"
#include "loader/resolve/absent.h"
#include "loader/resolve/search_elf.h"
#include "loader/resolve/search_elf_state.h"
#include "loader/resolve/search_host.h"
#include "loader/resolve/string_list.h"

/* NULL for an empty text: ld.so ignores an empty path. */
static int copy_nonempty(const char *text, char **out, struct exti_error *err)
{
    return exti__copy_text(out, text && *text ? text : NULL, err);
}

static int find_dirs(struct exti_search *s, const struct exti_elf_search_opts *o,
                     struct exti_error *err)
{
    static const char *const usual[] = {"/lib", "/usr/lib", NULL};
    struct exti_mapping m;
    int rc;

    if (o->dirs)
        return exti__strings_copy(o->dirs, &s->dirs, err);
    if (s->loader) {
        rc = exti__fs_map(s->loader, &m, NULL, err);
        if (rc)
            return rc;
        rc = exti__host_dirs(exti__span(m.p, m.n), &s->dirs, err);
        exti__fs_unmap(&m);
        if (rc || *s->dirs)
            return rc;
        exti__strings_free(s->dirs);
        s->dirs = NULL;
    }
    return exti__strings_copy(usual, &s->dirs, err);
}

/* A system need not have a cache, and ld.so ignores one of an unknown format. */
static int open_cache(struct exti_search *s, const char *file, struct exti_error *err)
{
    struct exti_error e = {0};
    int rc;

    if (!file)
        file = "/etc/ld.so.cache";
    if (!*file)
        return 0;
    rc = exti__fs_map(file, &s->cache_file, NULL, &e);
    if (exti__is_forbidden(rc, &e) || (rc == EXTI_E_IO && exti__is_absent(e.os_error)))
        return 0;
    if (rc == EXTI_E_FORMAT) /* empty */
        return 0;
    if (rc) {
        if (err)
            *err = e;
        return rc;
    }
    rc = exti__ld_cache_open(exti__span(s->cache_file.p, s->cache_file.n), &s->cache, NULL);
    return rc == EXTI_E_NOMEM ? exti__fail_nomem(err) : 0;
}

/* A static program has no search path. */
static int open_program(struct exti_search *s, const char *path, struct exti_error *err)
{
    struct exti_error e = {0};
    struct exti_mapping m;
    const char *rpath = NULL;
    int rc = copy_nonempty(path, &s->program_path, err);

    if (rc || !path)
        return rc;
    rc = exti__fs_map_parts(path, exti__elf_format.unread, &m, NULL, err);
    if (rc)
        return rc;
    rc = exti__elf_program_rpath(exti__span(m.p, m.n), &rpath, &e);
    if (!rc)
        rc = copy_nonempty(rpath, &s->program_rpath, &e);
    exti__fs_unmap(&m);
    if (!rc || rc == EXTI_E_UNSUPPORTED)
        return 0;
    exti__error_file(&e, path);
    if (err)
        *err = e;
    return rc;
}

static int fill_search(struct exti_search *s, const struct exti_elf_search_opts *o,
                       struct exti_error *err)
{
    const char *lib;
    int rc = copy_nonempty(o->library_path, &s->library_path, err);

    if (!rc)
        rc = o->loader ? copy_nonempty(o->loader, &s->loader, err)
                       : exti__host_loader(&s->loader, err);
    if (!rc)
        rc = find_dirs(s, o, err);
    if (rc)
        return rc;
    /* The first default folder is /$LIB. */
    lib = o->lib ? o->lib : *s->dirs ? *s->dirs + strspn(*s->dirs, "/") : NULL;
    rc = copy_nonempty(lib, &s->lib, err);
    if (!rc)
        rc = copy_nonempty(o->platform ? o->platform : exti__host_platform(), &s->platform, err);
    if (!rc)
        rc = exti__strings_copy(o->hwcaps ? o->hwcaps : exti__host_hwcaps(), &s->hwcaps, err);
    if (!rc)
        rc = exti__host_legacy(s->platform, &s->legacy, err);
    if (!rc)
        rc = open_cache(s, o->cache_file, err);
    return rc ? rc : open_program(s, o->program, err);
}

int exti__elf_search_open(const struct exti_elf_search_opts *opts, struct exti_search **out,
                          struct exti_error *err)
{
    struct exti_search *s = exti__calloc(1, sizeof *s);
    int rc;

    if (!s)
        return exti__fail_nomem(err);
    rc = exti__default_memo_open(&s->memo, err);
    if (!rc)
        rc = fill_search(s, opts, err);
    if (rc)
        exti__elf_search_close(s);
    else
        *out = s;
    return rc;
}

/* Whether another time might bring another answer. */
static bool is_passing(int rc, const struct exti_error *e)
{
    return exti__is_unseen(rc, e) && !exti__is_forbidden(rc, e);
}

int exti__elf_search_open_running(struct exti_search **out, struct exti_error *err)
{
    struct exti_elf_search_opts o = {0};
    struct exti_error e = {0};
    char *library_path, *program = NULL;
    int rc = exti__host_library_path(&library_path, err);

    if (rc)
        return rc;
    /* The program may be gone by now, or executable but not readable: then without its DT_RPATH. */
    rc = exti__fs_realpath("/proc/self/exe", &program, &e);
    if (!is_passing(rc, &e)) {
        o.library_path = library_path;
        o.program = program;
        rc = exti__elf_search_open(&o, out, &e);
    }
    if (rc && !is_passing(rc, &e) && program) {
        o.program = NULL;
        rc = exti__elf_search_open(&o, out, &e);
    }
    if (rc && err)
        *err = e;
    exti__free(program);
    exti__free(library_path);
    return rc;
}

void exti__elf_search_close(struct exti_search *s)
{
    if (!s)
        return;
    exti__free(s->library_path);
    exti__free(s->lib);
    exti__free(s->platform);
    exti__free(s->loader);
    exti__free(s->program_path);
    exti__strings_free(s->dirs);
    exti__strings_free(s->hwcaps);
    exti__strings_free(s->legacy);
    exti__fs_unmap(&s->cache_file);
    exti__free(s->program_rpath);
    exti__default_memo_close(s->memo);
    exti__free(s);
}

const char *const *exti__elf_search_dirs(const struct exti_search *s)
{
    return (const char *const *)s->dirs;
}
