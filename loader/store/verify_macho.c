/* Where the references of Mach-O copies lead, as dyld follows them.  Worked out from the copies and from what
 * the manifest says of each library needed, not from the edits. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/image/machines.h"
#include "loader/resolve/search_macho.h"
#include "loader/store/edits.h"
#include "loader/store/verify_priv.h"

#define LOADER_PATH "@loader_path/"
#define RPATH "@rpath/"

static bool begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* ---- install names ---- */

/* Slice `k` of the copy.  Its id is NULL if it has none, or if the API library has no code for that
 * machine, as then the slice is loaded by nobody and stays as it was. */
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

/* Whether dyld could take one for the other: of both it loads the slice for the same machine. */
static bool share_id(const struct exti_member_set *s, const struct exti_member *a,
                     const struct exti_member *b)
{
    const char *machine, *id;

    for (size_t k = 0; id_at(s, a, k, &machine, &id); k++)
        if (id && has_id(s, b, machine, id))
            return true;
    return false;
}

/* dyld gives a library that is loaded to whoever asks for its install name. */
static void check_id(struct exti_member_set *s, size_t at)
{
    const struct exti_member *m = &s->v[at];
    const char *was = m->entry->source_name;

    if (was && has_id(s, m, s->m->target.machine, was))
        exti__member_fault(s, m, "has its original's install name, %s, and would be taken for that",
                           was);
    for (size_t i = 0; i < at; i++)
        if (share_id(s, m, &s->v[i]))
            exti__member_fault(s, m, "has the install name of another copy, %s",
                               s->v[i].entry->copy);
}

/* ---- what is needed ---- */

static bool is_system(const char *name)
{
    return exti__search_macho()->is_system(name);
}

/* The copy that has the file name or, being the API library's, which is loaded before all others, the
 * install name `name`. */
static bool is_member(const struct exti_member_set *s, const char *name)
{
    const char *api = s->v[0].im ? s->v[0].im->info.id : NULL;

    if (api && strcmp(name, api) == 0)
        return true;
    if (!begins(name, LOADER_PATH))
        return false;
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->v[i].entry->copy, name + strlen(LOADER_PATH)) == 0)
            return true;
    return false;
}

/* The file, without links, that the copy gets from outside by that name; NULL: none.  exti__free it. */
static int find_file(const struct exti_image *im, const char *name, char **real,
                     struct exti_error *err)
{
    int rc = EXTI_E_IO;

    *real = NULL;
    if (name[0] == '/')
        rc = exti__fs_realpath(name, real, NULL);
    for (size_t i = 0; i < im->path_count && rc == EXTI_E_IO && begins(name, RPATH); i++) {
        char *path = exti__path_join(im->paths[i], name + strlen(RPATH));

        rc = !path ? EXTI_E_NOMEM : path[0] == '/' ? exti__fs_realpath(path, real, NULL) : rc;
        exti__free(path);
    }
    return rc == EXTI_E_NOMEM ? exti__fail_nomem(err) : 0;
}

/* Whether one of the copy's own LC_RPATHs is a folder of the system's. */
static bool reaches_system(const struct exti_image *im, const char *name)
{
    for (size_t i = 0; i < im->path_count && begins(name, RPATH); i++)
        if (is_system(im->paths[i]))
            return true;
    return false;
}

/* What the manifest says of a library that the copy names as its original does, or by its path. */
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

    if (is_member(s, name) || is_system(name))
        return 0;
    if (exti__edits_is_api(s->m, name)) {
        exti__member_fault(s, at, "needs %s, the original, and not the context's copy", name);
        return 0;
    }
    if (s->m->policy.closure == EXTI_CLOSURE_NONE || reaches_system(im, name))
        return 0;
    rc = find_file(im, name, &real, err);
    if (rc)
        return rc;
    n = find_need(at->entry, name, real);
    if (n && n->isolated)
        exti__member_fault(s, at, "needs %s, the original, and not the context's copy, %s", name,
                           n->to);
    else if (!n)
        exti__member_fault(s, at, "needs %s, which is neither a copy of the context's nor shared",
                           name);
    exti__free(real);
    return 0;
}

/* Slices that the API library has no code for are loaded by nobody. */
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
