/* Weak definitions, one for the process: each look-up of the original is in the copy, or the
 * slot is kept to what the edits make of it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "macho/check/macho_check_priv.h"

struct weak {
    struct macho_slots before, after, bound, rebased; /* bound: in the copy; rebased: as it was */
};

static bool is_mark(const struct macho_slot *s)
{
    return s->at == UINT64_MAX;
}

static uint64_t place_of(const struct macho_check *c, const struct macho_slot *s)
{
    return is_mark(s) ? s->at : s->at + c->shift;
}

/* ---- where a look-up leads instead ----------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct macho_linked *)a)->name, ((const struct macho_linked *)b)->name);
}

/* The undefined symbols of the original and the libraries that they were linked against. */
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
        qsort(c->linked, c->linked_count, sizeof *c->linked, by_name);
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

/* The new number of library `was` of the original, if it has another name now; else 0. */
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
    return was <= c->after.dylib_count && !find_dylib(&c->after, name) ? (int32_t)was : 0;
}

/* A copy takes no part in weak look-ups, so what the file has is its own, and what a library
 * that is now a copy has is that copy's. */
int exti__macho_weak_target(struct macho_check *c, const char *symbol, int *how, int32_t *target,
                            struct exti_error *err)
{
    const struct macho_linked key = {symbol, 0}, *linked;
    bool own;
    int rc;

    *how = 0;
    *target = BIND_SPECIAL_DYLIB_SELF;
    if (c->opts && !(c->opts->flags & EXTI_RW_CLEAR_UNIQUE))
        return 0;
    rc = exti__macho_defines(c, symbol, &own, err);
    if (!rc)
        rc = know_linked(c, err);
    if (rc)
        return rc;
    if (!own) {
        linked =
            c->linked_count ? bsearch(&key, c->linked, c->linked_count, sizeof key, by_name) : NULL;
        *target = linked ? replaced_library(c, linked->library) : 0;
    }
    if (own || *target)
        *how = c->opts ? 2 : 1;
    return 0;
}

/* ---- slots ----------------------------------------------------------------------------------- */

const struct macho_slot *exti__macho_slot_find(const struct macho_slots *list, uint64_t at)
{
    size_t low = 0, high = list->n;

    /* Of several, dyld comes to the last one last. */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (list->v[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low && list->v[low - 1].at == at ? &list->v[low - 1] : NULL;
}

/* A slot that no weak binding writes to any more is bound to `target`, or a rebase leaves the
 * address of the file's own definition in it. */
static bool holds(struct macho_check *c, const struct weak *w, const struct macho_slot *s,
                  int32_t target)
{
    const struct macho_slot *bound = exti__macho_slot_find(&w->bound, place_of(c, s));
    const struct macho_exported *own = exti__macho_exports_find(&c->own, s->symbol);
    struct exti_span content;

    if (bound)
        return bound->ordinal == target && bound->addend == s->addend &&
               strcmp(bound->symbol, s->symbol) == 0;
    if (target != BIND_SPECIAL_DYLIB_SELF || !own || !exti__macho_slot_find(&w->rebased, s->at) ||
        exti__macho_at(&c->before, c->before.text->vmaddr + s->at, 8, "", &content, NULL))
        return false;
    return exti__macho_u64(content.p) ==
           c->before.text->vmaddr + own->address + (uint64_t)s->addend;
}

static int weak_gone(struct macho_check *c, const struct weak *w, const struct macho_slot *s,
                     struct exti_error *err)
{
    int32_t target;
    int how, rc = exti__macho_weak_target(c, s->symbol, &how, &target, err);

    if (rc)
        return rc;
    if (!how)
        exti__macho_finding(c, EXTI_NO_OFFSET, "weak binding of %s is lost", s->symbol);
    else if (!is_mark(s) && !holds(c, w, s, target))
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "%s at 0x%" PRIx64 ": no weak binding any more, but not bound to %s",
                            s->symbol, place_of(c, s),
                            target ? c->after.dylibs[target - 1].name : "the file's own");
    return 0;
}

static int weak_kept(struct macho_check *c, const struct macho_slot *was,
                     const struct macho_slot *now, struct exti_error *err)
{
    int32_t target;
    int how, rc = exti__macho_weak_target(c, now->symbol, &how, &target, err);

    if (rc || is_mark(now))
        return rc;
    if (how == 2)
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "%s at 0x%" PRIx64 ": still one definition for the process",
                            now->symbol, now->at);
    if (now->addend != was->addend || now->flags != was->flags || now->type != was->type)
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "weak binding of %s at 0x%" PRIx64 ": addend, flags or type are not "
                            "the original's",
                            now->symbol, now->at);
    return 0;
}

/* The copy's weak binding at `j` if it is `was`, else NULL. */
static const struct macho_slot *same_weak(const struct macho_check *c, const struct macho_slot *was,
                                          const struct macho_slots *after, size_t j)
{
    const struct macho_slot *now = j < after->n ? &after->v[j] : NULL;

    return now && now->at == place_of(c, was) && strcmp(now->symbol, was->symbol) == 0 ? now : NULL;
}

static int compare_weak(struct macho_check *c, const struct weak *w, struct exti_error *err)
{
    size_t j = 0;
    int rc = 0;

    for (size_t i = 0; !rc && i < w->before.n && !c->judge.stop; i++) {
        const struct macho_slot *was = &w->before.v[i], *now = same_weak(c, was, &w->after, j);

        rc = now ? weak_kept(c, was, now, err) : weak_gone(c, w, was, err);
        j += now != NULL;
    }
    if (!rc && j < w->after.n)
        exti__macho_finding(c, EXTI_NO_OFFSET, "weak binding of %s is new", w->after.v[j].symbol);
    if (!rc && w->after.n && c->before.flags & MH_BINDS_TO_WEAK &&
        !(c->after.flags & MH_BINDS_TO_WEAK))
        exti__macho_finding(c, 24, "header: MH_BINDS_TO_WEAK is cleared, but %s is still looked up",
                            w->after.v[0].symbol);
    return rc;
}

static bool has_weak(const struct macho_check *c)
{
    return c->before.pieces[MACHO_WEAK_BIND].s.n || c->after.pieces[MACHO_WEAK_BIND].s.n;
}

static int weak_slots(struct macho_check *c, struct macho_slots *before, struct macho_slots *after,
                      struct exti_error *err)
{
    int rc = exti__macho_slots(c, &c->before, MACHO_STREAM_WEAK, before, err);

    if (!rc)
        rc = exti__macho_slots(c, &c->after, MACHO_STREAM_WEAK, after, err);
    exti__macho_slots_sort(before);
    exti__macho_slots_sort(after);
    return rc;
}

int exti__macho_weak_dropped(struct macho_check *c, struct macho_slots *out, struct exti_error *err)
{
    struct macho_slots b = {NULL, 0, 0}, a = {NULL, 0, 0};
    size_t j = 0;
    int rc = has_weak(c) ? weak_slots(c, &b, &a, err) : 0;

    for (size_t i = 0; !rc && i < b.n; i++)
        if (same_weak(c, &b.v[i], &a, j))
            j++;
        else if (!is_mark(&b.v[i]))
            rc = exti__macho_slot_add(out, b.v[i], err);
    exti__macho_slots_free(&b);
    exti__macho_slots_free(&a);
    return rc;
}

int exti__macho_step_weak(struct macho_check *c, struct exti_error *err)
{
    struct weak w = {{NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0}};
    int rc;

    if (!has_weak(c))
        return 0;
    rc = weak_slots(c, &w.before, &w.after, err);
    if (!rc)
        rc = exti__macho_slots(c, &c->before, MACHO_STREAM_REBASE, &w.rebased, err);
    exti__macho_slots_sort(&w.rebased);
    if (!rc)
        rc = exti__macho_bound_slots(c, &c->after, &w.bound, err);
    if (!rc)
        rc = compare_weak(c, &w, err);
    exti__macho_slots_free(&w.before);
    exti__macho_slots_free(&w.after);
    exti__macho_slots_free(&w.bound);
    exti__macho_slots_free(&w.rebased);
    return rc;
}
