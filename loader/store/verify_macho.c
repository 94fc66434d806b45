/* Follows the needed libraries of Mach-O copies as dyld does.  Works from the copies themselves
 * and from the manifest's list of needs, not from the recorded edits, so that it finds faults in
 * those too. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/path.h"
#include "base/text.h"
#include "loader/image/machines.h"
#include "loader/resolve/search_macho.h"
#include "loader/store/manifest_api.h"
#include "loader/store/verify_macho.h"

#define LOADER_PATH "@loader_path/"
#define RPATH "@rpath/"

/* ---- install names ---- */

/* Machine and install name of slice `k` of the copy; false when there is no such slice.  The
 * install name is NULL if it has none, or if the API library has no code for that machine:
 * nobody loads such a slice, so it was not rewritten. */
static bool id_at(const struct exti_member_set *s, const struct exti_member *at, size_t k,
                  const char **machine, const char **id)
{
    const struct exti_image *part = at->im ? exti__image_part(at->im, k) : NULL;

    if (!part)
        return false;
    *machine = part->info.machine;
    *id = exti__machines_meet(*machine, s->m->target.machine) ? part->info.id : NULL;
    return true;
}

static bool has_id(const struct exti_member_set *s, const struct exti_member *at,
                   const char *wanted_machine, const char *wanted)
{
    const char *machine, *id;

    for (size_t k = 0; id_at(s, at, k, &machine, &id); k++)
        if (id && strcmp(id, wanted) == 0 && exti__machines_meet(machine, wanted_machine))
            return true;
    return false;
}

/* Whether dyld could take one copy for the other: their slices for some machine have the same
 * install name. */
static bool share_id(const struct exti_member_set *s, const struct exti_member *a,
                     const struct exti_member *b)
{
    const char *machine, *id;

    for (size_t k = 0; id_at(s, a, k, &machine, &id); k++)
        if (id && has_id(s, b, machine, id))
            return true;
    return false;
}

/* dyld gives a loaded library to whoever asks for its install name. */
static void check_id(struct exti_member_set *s, size_t at)
{
    const struct exti_member *m = &s->v[at];
    const char *was = m->entry->source_name;

    if (was && has_id(s, m, s->m->target.machine, was))
        exti__member_fault(
            s, m, "has its original's install name, %s, so that dyld would take it for that", was);
    for (size_t i = 0; i < at; i++)
        if (share_id(s, m, &s->v[i]))
            exti__member_fault(s, m, "has the install name of another copy, %s",
                               s->v[i].entry->copy);
}

/* ---- needed libraries ---- */

static bool is_system_library(const char *name)
{
    return exti__search_macho()->is_system(name);
}

/* Whether `name` is the path of a copy, or the install name of the API library's: that one is
 * loaded before all others, so dyld answers with it. */
static bool is_member(const struct exti_member_set *s, const char *name)
{
    const char *api = s->v[0].im ? s->v[0].im->info.id : NULL;

    if (api && strcmp(name, api) == 0)
        return true;
    if (!exti__starts_with(name, LOADER_PATH))
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].entry->copy, name + strlen(LOADER_PATH)) == 0)
            return true;
    return false;
}

/* The file outside the context that the copy gets by that name, without links; NULL if there is
 * none. exti__free it. */
static int find_outside_file(const struct exti_image *im, const char *name, char **real,
                             struct exti_error *err)
{
    int rc = EXTI_E_IO;

    *real = NULL;
    if (name[0] == '/')
        rc = exti__fs_realpath(name, real, NULL);
    for (size_t i = 0; i < im->path_count && rc == EXTI_E_IO && exti__starts_with(name, RPATH);
         i++) {
        char *path = exti__path_join(im->paths[i], name + strlen(RPATH));

        rc = !path ? EXTI_E_NOMEM : path[0] == '/' ? exti__fs_realpath(path, real, NULL) : rc;
        exti__free(path);
    }
    return rc == EXTI_E_NOMEM ? exti__fail_nomem(err) : 0;
}

/* Whether one of the copy's own LC_RPATHs is a system folder, where libraries may have no file
 * at all. */
static bool reaches_system(const struct exti_image *im, const char *name)
{
    for (size_t i = 0; i < im->path_count && exti__starts_with(name, RPATH); i++)
        if (is_system_library(im->paths[i]))
            return true;
    return false;
}

/* The manifest's need for a library that the copy names by its path, or as the original does. */
static const struct exti_need *find_need(const struct exti_entry *e, const char *name,
                                         const char *real)
{
    for (size_t i = 0; i < e->need_count; i++) {
        const struct exti_need *n = &e->needs[i];

        if (real ? n->file && strcmp(n->file, real) == 0 : !n->file && strcmp(n->name, name) == 0)
            return n;
    }
    return NULL;
}

static int check_need(struct exti_member_set *s, const struct exti_member *at,
                      const struct exti_image *im, const char *name, struct exti_error *err)
{
    const struct exti_need *n;
    char *real;
    int rc;

    if (is_member(s, name) || is_system_library(name))
        return 0;
    if (exti__manifest_is_api(s->m, name)) {
        exti__member_fault(s, at, "needs %s, the original, instead of the context's copy", name);
        return 0;
    }
    if (s->m->policy.closure == EXTI_CLOSURE_NONE || reaches_system(im, name))
        return 0;
    rc = find_outside_file(im, name, &real, err);
    if (rc)
        return rc;
    n = find_need(at->entry, name, real);
    if (n && n->isolated)
        exti__member_fault(s, at, "needs %s, the original, instead of the context's copy, %s", name,
                           n->to);
    else if (!n)
        exti__member_fault(
            s, at, "needs %s, which is neither a copy in this context nor shared by it", name);
    exti__free(real);
    return 0;
}

/* Skips slices for machines that the API library has no code for: nobody loads those. */
static int check_needs(struct exti_member_set *s, const struct exti_member *at,
                       struct exti_error *err)
{
    const struct exti_image *part;
    int rc = 0;

    for (size_t k = 0; (part = exti__image_part(at->im, k)); k++) {
        if (!exti__machines_meet(part->info.machine, s->m->target.machine))
            continue;
        for (size_t i = 0; i < part->info.needed_count && !rc && !s->stop; i++)
            rc = check_need(s, at, part, part->needed[i].name, err);
    }
    return rc;
}

int exti__verify_macho(struct exti_member_set *s, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < s->n && !rc && !s->stop; i++)
        if (s->v[i].im) {
            check_id(s, i);
            rc = check_needs(s, &s->v[i], err);
        }
    return rc;
}
