/* Weak bindings: the copy has each weak look-up of the original, or binds its slot to the
 * definition that the edits lead to. */
#include "macho/check/macho_check_weak.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "macho/check/macho_check_bind.h"
#include "macho/check/macho_check_exports.h"
#include "macho/check/macho_check_follow.h"
#include "macho/check/macho_check_report.h"
#include "macho/read/macho_segments.h"
#include "macho/read/macho_word.h"

struct weak {
    struct macho_slots before, after, bound, rebased; /* bound: in the copy; rebased: in the
                                                       * original */
};

static bool is_mark(const struct macho_slot *s)
{
    return s->at == UINT64_MAX;
}

static uint64_t place_of(const struct macho_check *c, const struct macho_slot *s)
{
    return is_mark(s) ? s->at : s->at + c->shift;
}

/* Whether a slot without a weak binding has the right value: another stream binds it to
 * `target`, or a rebase leaves the address of the file's own definition in it. */
static bool slot_holds(struct macho_check *c, const struct weak *w, const struct macho_slot *s,
                       int32_t target)
{
    const struct macho_slot *bound = exti__macho_slot_find(&w->bound, place_of(c, s));
    const struct macho_exported *own = exti__macho_exports_find(&c->own, s->symbol);
    struct exti_span content;

    if (bound)
        return exti__macho_is_weak_target(c, target, bound->ordinal) &&
               bound->addend == s->addend && strcmp(bound->symbol, s->symbol) == 0;
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
    enum macho_weak_fate fate;
    int rc = exti__macho_weak_target(c, s->symbol, &fate, &target, err);

    if (rc)
        return rc;
    if (fate == MACHO_WEAK_STAYS)
        exti__macho_finding(c, EXTI_NO_OFFSET, "weak binding of %s is lost", s->symbol);
    else if (!is_mark(s) && !slot_holds(c, w, s, target))
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "%s at 0x%" PRIx64 ": lost its weak binding, but is not bound to %s",
                            s->symbol, place_of(c, s),
                            !target   ? "the file's own definition"
                            : c->opts ? c->after.dylibs[target - 1].name
                                      : "a library with a new name");
    return 0;
}

static int weak_kept(struct macho_check *c, const struct macho_slot *was,
                     const struct macho_slot *now, struct exti_error *err)
{
    int32_t target;
    enum macho_weak_fate fate;
    int rc = exti__macho_weak_target(c, now->symbol, &fate, &target, err);

    if (rc || is_mark(now))
        return rc;
    if (fate == MACHO_WEAK_MUST_GO)
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "%s at 0x%" PRIx64 ": still looked up among all weak definitions",
                            now->symbol, now->at);
    if (now->addend != was->addend || now->flags != was->flags || now->type != was->type)
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "weak binding of %s at 0x%" PRIx64
                            ": addend, flags or type differ from the original's",
                            now->symbol, now->at);
    return 0;
}

/* The copy's weak binding at index `j` if it corresponds to `was`, otherwise NULL. */
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
