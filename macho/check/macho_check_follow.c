/* Which library a reference of the copy must be bound to. */
#include "macho/check/macho_check_follow.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/check/macho_check_exports.h"
#include "macho/check/macho_check_report.h"
#include "macho/read/macho_fat.h"
#include "macho/read/macho_word.h"

static int know_own(struct macho_check *c, struct exti_error *err)
{
    int rc = 0;

    if (!c->own_known) {
        rc = exti__macho_exports(c, &c->before, &c->own, err);
        exti__macho_exports_sort(&c->own);
        c->own_known = !rc;
    }
    return rc;
}

static int add_provided(struct macho_check *c, struct exti_span file, struct exti_error *err)
{
    const struct macho_slice *slice;
    struct macho_file f;
    struct macho_fat fat;
    int rc = exti__macho_fat_open(file, &fat, err);

    if (rc)
        return rc;
    slice = exti__macho_slice_for(&fat, c->before.cputype, c->before.cpusubtype);
    if (slice && exti__macho_slice_handled(slice)) {
        rc = exti__macho_open(slice->s, &f, err);
        if (!rc) {
            rc = exti__macho_exports(c, &f, &c->provided, err);
            exti__macho_close(&f);
        }
    }
    exti__macho_fat_close(&fat);
    return rc;
}

static int know_provided(struct macho_check *c, struct exti_error *err)
{
    int rc = 0;

    if (c->provided_known)
        return 0;
    for (size_t i = 0; !rc && i < c->bind_count; i++)
        rc = add_provided(c, c->bind[i], err);
    exti__macho_exports_sort(&c->provided);
    c->provided_known = !rc;
    return rc;
}

static int original_defines(struct macho_check *c, const char *symbol, bool *out,
                            struct exti_error *err)
{
    const struct macho_exported *e;
    int rc = know_own(c, err);

    e = rc ? NULL : exti__macho_exports_find(&c->own, symbol);
    *out = e && !(e->flags & EXPORT_SYMBOL_FLAGS_REEXPORT);
    return rc;
}

/* ---- weak look-ups --------------------------------------------------------------------------- */

static int by_linked_name(const void *a, const void *b)
{
    return strcmp(((const struct macho_linked *)a)->name, ((const struct macho_linked *)b)->name);
}

/* Collects the original's undefined symbols and the libraries that they were linked against. */
static int know_linked(struct macho_check *c, struct exti_error *err)
{
    const struct exti_span s = c->before.pieces[MACHO_SYMBOLS].s,
                           names = c->before.pieces[MACHO_STRINGS].s;

    if (c->linked_known)
        return 0;
    c->linked = exti__calloc(s.n / NLIST_64_SIZE, sizeof *c->linked);
    if (!c->linked)
        return exti__fail_nomem(err);
    for (size_t at = 0; at + NLIST_64_SIZE <= s.n; at += NLIST_64_SIZE) {
        const uint8_t *p = s.p + at;
        const uint32_t name = exti__macho_u32(p);

        if (p[4] & N_STAB || (p[4] & N_TYPE) != N_UNDF || !(p[4] & N_EXT) || name >= names.n ||
            !memchr(names.p + name, 0, names.n - name))
            continue;
        c->linked[c->linked_count++] =
            (struct macho_linked){(const char *)names.p + name, exti__macho_u16(p + 6) >> 8};
    }
    if (c->linked_count)
        qsort(c->linked, c->linked_count, sizeof *c->linked, by_linked_name);
    c->linked_known = true;
    return 0;
}

static int32_t find_dylib(const struct macho_file *f, const char *name)
{
    for (size_t i = 0; i < f->dylib_count; i++)
        if (strcmp(f->dylibs[i].name, name) == 0)
            return (int32_t)i + 1;
    return 0;
}

static bool is_replaced(const struct macho_check *c, const char *name)
{
    for (size_t i = 0; i < c->opts->needed_count; i++)
        if (c->opts->needed[i].from && c->opts->needed[i].to &&
            strcmp(c->opts->needed[i].from, name) == 0)
            return true;
    return false;
}

/* The copy's ordinal of the original's library `was` if that was renamed, otherwise 0.  Without a
 * request nobody knows which of the copy's new names is its: `was` then says that it was. */
static int32_t replaced_library(const struct macho_check *c, uint32_t was)
{
    const char *name;

    if (!was || was > c->before.dylib_count)
        return 0;
    name = c->before.dylibs[was - 1].name;
    if (c->opts)
        return is_replaced(c, name) && c->expect.named[was - 1]
                   ? find_dylib(&c->after, c->expect.named[was - 1])
                   : 0;
    return !find_dylib(&c->after, name) ? (int32_t)was : 0;
}

/* Copies take no part in weak look-ups.  So a name that the file defines binds to the file, and
 * a name from a library that is now a copy binds to that copy. */
int exti__macho_weak_target(struct macho_check *c, const char *symbol, enum macho_weak_fate *fate,
                            int32_t *target, struct exti_error *err)
{
    const struct macho_linked key = {symbol, 0}, *linked;
    bool own;
    int rc;

    *fate = MACHO_WEAK_STAYS;
    *target = BIND_SPECIAL_DYLIB_SELF;
    if (c->opts && !(c->opts->flags & EXTI_RW_CLEAR_UNIQUE))
        return 0;
    rc = original_defines(c, symbol, &own, err);
    if (!rc)
        rc = know_linked(c, err);
    if (rc)
        return rc;
    if (!own) {
        linked = c->linked_count
                     ? bsearch(&key, c->linked, c->linked_count, sizeof key, by_linked_name)
                     : NULL;
        *target = linked ? replaced_library(c, linked->library) : 0;
    }
    if (own || *target)
        *fate = c->opts ? MACHO_WEAK_MUST_GO : MACHO_WEAK_MAY_GO;
    return 0;
}

bool exti__macho_is_weak_target(const struct macho_check *c, int32_t target, int32_t now)
{
    const char *name;

    if (c->opts || target == BIND_SPECIAL_DYLIB_SELF)
        return now == target;
    name = exti__macho_library_of(&c->after, now);
    return name && !find_dylib(&c->before, name);
}

/* ---- all references -------------------------------------------------------------------------- */

/* Whether both ordinals mean the same library.  Without a request any library may have been
 * renamed, but a name that remains keeps its meaning. */
static bool follows_library(const struct macho_check *c, int32_t was, int32_t now)
{
    const char *old = exti__macho_library_of(&c->before, was),
               *new = exti__macho_library_of(&c->after, now);

    if (!old || !new)
        return was == now;
    if (c->opts)
        return c->expect.named[was - 1] && strcmp(new, c->expect.named[was - 1]) == 0;
    if (strcmp(old, new) == 0)
        return true;
    for (size_t i = 0; i < c->after.dylib_count; i++)
        if (strcmp(c->after.dylibs[i].name, old) == 0)
            return false;
    return true;
}

/* The expected target of a reference that names no library, or a removed one. */
static int expect_unnamed(struct macho_check *c, const char *symbol, int32_t was, int32_t *want,
                          struct exti_error *err)
{
    bool own = false;
    int rc = 0;

    *want = was > 0 ? BIND_SPECIAL_DYLIB_FLAT_LOOKUP : was;
    if (c->opts->flags & EXTI_RW_SYMBOLIC && was == BIND_SPECIAL_DYLIB_FLAT_LOOKUP)
        rc = original_defines(c, symbol, &own, err);
    if (own) {
        *want = BIND_SPECIAL_DYLIB_SELF;
        return 0;
    }
    if (!rc)
        rc = know_provided(c, err);
    if (!rc && exti__macho_exports_find(&c->provided, symbol))
        *want = c->expect.bind_ordinal;
    return rc;
}

/* Without a request, any library will do, or the file itself if it defines the symbol. */
static int may_follow(struct macho_check *c, const char *symbol, int32_t now, bool *ok,
                      struct exti_error *err)
{
    *ok = now > 0;
    return now == BIND_SPECIAL_DYLIB_SELF ? original_defines(c, symbol, ok, err) : 0;
}

static bool is_gone(const struct macho_check *c, int32_t ordinal)
{
    return c->opts && (size_t)ordinal <= c->before.dylib_count && !c->expect.named[ordinal - 1];
}

int exti__macho_follows(struct macho_check *c, const char *symbol, int32_t was, int32_t now,
                        bool *ok, struct exti_error *err)
{
    int32_t want = was, target;
    enum macho_weak_fate fate;
    int rc = 0;

    *ok = was == now && was == BIND_SPECIAL_DYLIB_SELF;
    if (was == BIND_SPECIAL_DYLIB_SELF)
        return 0;
    if (was == BIND_SPECIAL_DYLIB_WEAK_LOOKUP) {
        rc = exti__macho_weak_target(c, symbol, &fate, &target, err);
        *ok = !rc && ((fate != MACHO_WEAK_STAYS && exti__macho_is_weak_target(c, target, now)) ||
                      (now == was && fate != MACHO_WEAK_MUST_GO));
        return rc;
    }
    if (was > 0 && !is_gone(c, was)) {
        *ok = follows_library(c, was, now);
        return 0;
    }
    if (!c->opts) {
        *ok = now == was;
        return *ok ? 0 : may_follow(c, symbol, now, ok, err);
    }
    rc = expect_unnamed(c, symbol, was, &want, err);
    *ok = now == want;
    return rc;
}

void exti__macho_follow_free(struct macho_check *c)
{
    exti__macho_exports_free(&c->own);
    exti__macho_exports_free(&c->provided);
    exti__free(c->linked);
    c->linked = NULL;
    c->linked_count = 0;
    c->own_known = c->provided_known = c->linked_known = false;
}
