/* What dyld binds: every reference of the original is in the copy, to the library that the edits make of
 * it, and no other. */
#include <inttypes.h>
#include <string.h>

#include "macho/macho_check_priv.h"

static bool has_opcodes(const struct macho_file *f)
{
    return f->pieces[MACHO_REBASE].present;
}

static bool is_mark(const struct macho_slot *s)
{
    return s->at == UINT64_MAX;
}

static uint64_t place_of(const struct macho_check *c, const struct macho_slot *s)
{
    return is_mark(s) ? s->at : s->at + c->shift;
}

/* ---- rebases ----------------------------------------------------------------------------------------- */

static int compare_rebases(struct macho_check *c, struct exti_error *err)
{
    struct macho_slots b = {NULL, 0, 0}, a = {NULL, 0, 0};
    int rc = exti__macho_slots(c, &c->before, MACHO_STREAM_REBASE, &b, err);

    if (!rc)
        rc = exti__macho_slots(c, &c->after, MACHO_STREAM_REBASE, &a, err);
    exti__macho_slots_sort(&b);
    exti__macho_slots_sort(&a);
    for (size_t i = 0; !rc && (i < b.n || i < a.n); i++)
        if (i >= b.n || i >= a.n || a.v[i].at != b.v[i].at + c->shift ||
            a.v[i].type != b.v[i].type) {
            exti__macho_finding(c, EXTI_NO_OFFSET,
                                "rebases: not the original's from number %zu of %zu on", i, b.n);
            break;
        }
    exti__macho_slots_free(&b);
    exti__macho_slots_free(&a);
    return rc;
}

/* ---- bindings, eager and lazy ------------------------------------------------------------------------ */

static int bound_slots(struct macho_check *c, const struct macho_file *f, struct macho_slots *out,
                       struct exti_error *err)
{
    int rc = exti__macho_slots(c, f, MACHO_STREAM_BIND, out, err);

    if (!rc)
        rc = exti__macho_slots(c, f, MACHO_STREAM_LAZY, out, err);
    exti__macho_slots_sort(out);
    return rc;
}

static const char *library_text(const struct macho_file *f, int32_t ordinal)
{
    const char *name = exti__macho_library_of(f, ordinal);

    if (name)
        return name;
    return ordinal == BIND_SPECIAL_DYLIB_SELF              ? "the file itself"
           : ordinal == BIND_SPECIAL_DYLIB_MAIN_EXECUTABLE ? "the main program"
           : ordinal == BIND_SPECIAL_DYLIB_FLAT_LOOKUP     ? "a flat look-up"
           : ordinal == BIND_SPECIAL_DYLIB_WEAK_LOOKUP     ? "a weak look-up"
                                                           : "no library";
}

static int check_library(struct macho_check *c, const char *symbol, int32_t was, int32_t now,
                         struct exti_error *err)
{
    bool ok;
    int rc = exti__macho_follows(c, symbol, was, now, &ok, err);

    if (!rc && !ok)
        exti__macho_finding(c, EXTI_NO_OFFSET, "%s: bound to %s (%d); in the original, to %s (%d)",
                            symbol, library_text(&c->after, now), now,
                            library_text(&c->before, was), was);
    return rc;
}

static int compare_binding(struct macho_check *c, const struct macho_slot *was,
                           const struct macho_slot *now, struct exti_error *err)
{
    if (strcmp(now->symbol, was->symbol) != 0 || now->addend != was->addend ||
        now->flags != was->flags || now->type != was->type) {
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "binding at 0x%" PRIx64 ": %s + %" PRId64 ", flags 0x%x, not %s + "
                            "%" PRId64 ", flags 0x%x",
                            now->at, now->symbol, now->addend, now->flags, was->symbol, was->addend,
                            was->flags);
        return 0;
    }
    if (now->stream == MACHO_STREAM_LAZY && was->stream != MACHO_STREAM_LAZY)
        exti__macho_finding(c, EXTI_NO_OFFSET, "%s: bound lazily, the original's is not",
                            now->symbol);
    /* Helper code tells dyld by this number what to bind. */
    else if (now->stream == MACHO_STREAM_LAZY && now->opcode != was->opcode)
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "%s: its lazy opcodes are at 0x%x of their stream, not at 0x%x, where "
                            "its stub looks",
                            now->symbol, now->opcode, was->opcode);
    return check_library(c, now->symbol, was->ordinal, now->ordinal, err);
}

static int compare_bindings(struct macho_check *c, const struct macho_slots *b,
                            const struct macho_slots *a, struct exti_error *err)
{
    size_t i = 0, j = 0;
    int rc = 0;

    while (!rc && !c->stop && (i < b->n || j < a->n)) {
        const uint64_t was = i < b->n ? place_of(c, &b->v[i]) : UINT64_MAX,
                       now = j < a->n ? a->v[j].at : UINT64_MAX;

        if (was < now)
            exti__macho_finding(c, EXTI_NO_OFFSET, "binding of %s at 0x%" PRIx64 " is lost",
                                b->v[i].symbol, was);
        else if (now < was)
            exti__macho_finding(c, EXTI_NO_OFFSET, "binding of %s at 0x%" PRIx64 " is new",
                                a->v[j].symbol, now);
        else
            rc = compare_binding(c, &b->v[i], &a->v[j], err);
        i += was <= now;
        j += now <= was;
    }
    return rc;
}

int exti__macho_step_opcodes(struct macho_check *c, struct exti_error *err)
{
    struct macho_slots b = {NULL, 0, 0}, a = {NULL, 0, 0};
    int rc = 0;

    if (!has_opcodes(&c->before) && !has_opcodes(&c->after))
        return 0;
    if (c->shift || !exti__macho_same_piece(c, MACHO_REBASE))
        rc = compare_rebases(c, err);
    if (!rc)
        rc = bound_slots(c, &c->before, &b, err);
    if (!rc)
        rc = bound_slots(c, &c->after, &a, err);
    if (!rc)
        rc = compare_bindings(c, &b, &a, err);
    exti__macho_slots_free(&b);
    exti__macho_slots_free(&a);
    return rc;
}

/* ---- weak bindings ----------------------------------------------------------------------------------- */

struct weak {
    struct macho_slots before, after, bound, rebased; /* bound: in the copy; rebased: as it was */
};

static const struct macho_slot *find_slot(const struct macho_slots *list, uint64_t at)
{
    size_t low = 0, high = list->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (list->v[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < list->n && list->v[low].at == at ? &list->v[low] : NULL;
}

/* A slot that no weak binding writes to any more holds the file's own definition: it is bound to the
 * file itself, or a rebase leaves that address in it. */
static bool holds_own(struct macho_check *c, const struct weak *w, const struct macho_slot *s)
{
    const struct macho_slot *bound = find_slot(&w->bound, place_of(c, s));
    const struct macho_exported *own = exti__macho_exports_find(&c->own, s->symbol);
    struct exti_span content;

    if (bound)
        return bound->ordinal == BIND_SPECIAL_DYLIB_SELF && bound->addend == s->addend &&
               strcmp(bound->symbol, s->symbol) == 0;
    if (!own || !find_slot(&w->rebased, s->at) ||
        exti__macho_at(&c->before, c->before.text->vmaddr + s->at, 8, "", &content, NULL))
        return false;
    return exti__macho_u64(content.p) ==
           c->before.text->vmaddr + own->address + (uint64_t)s->addend;
}

static int weak_gone(struct macho_check *c, const struct weak *w, const struct macho_slot *s,
                     struct exti_error *err)
{
    int how, rc = exti__macho_kept_to_self(c, s->symbol, &how, err);

    if (rc)
        return rc;
    if (!how)
        exti__macho_finding(c, EXTI_NO_OFFSET, "weak binding of %s is lost", s->symbol);
    else if (!is_mark(s) && !holds_own(c, w, s))
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "%s at 0x%" PRIx64 ": neither a weak binding nor the file's own "
                            "definition",
                            s->symbol, place_of(c, s));
    return 0;
}

static int weak_kept(struct macho_check *c, const struct macho_slot *was,
                     const struct macho_slot *now, struct exti_error *err)
{
    int how, rc = exti__macho_kept_to_self(c, now->symbol, &how, err);

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

static int compare_weak(struct macho_check *c, const struct weak *w, struct exti_error *err)
{
    size_t j = 0;
    int rc = 0;

    for (size_t i = 0; !rc && i < w->before.n && !c->stop; i++) {
        const struct macho_slot *was = &w->before.v[i],
                                *now = j < w->after.n ? &w->after.v[j] : NULL;

        if (now && now->at == place_of(c, was) && strcmp(now->symbol, was->symbol) == 0) {
            rc = weak_kept(c, was, now, err);
            j++;
        } else {
            rc = weak_gone(c, w, was, err);
        }
    }
    if (!rc && j < w->after.n)
        exti__macho_finding(c, EXTI_NO_OFFSET, "weak binding of %s is new", w->after.v[j].symbol);
    if (!rc && w->after.n && c->before.flags & MH_BINDS_TO_WEAK &&
        !(c->after.flags & MH_BINDS_TO_WEAK))
        exti__macho_finding(c, 24, "header: MH_BINDS_TO_WEAK is cleared, but %s is still looked up",
                            w->after.v[0].symbol);
    return rc;
}

int exti__macho_step_weak(struct macho_check *c, struct exti_error *err)
{
    struct weak w = {{NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0}, {NULL, 0, 0}};
    int rc = 0;

    if (!c->before.pieces[MACHO_WEAK_BIND].s.n && !c->after.pieces[MACHO_WEAK_BIND].s.n)
        return 0;
    rc = exti__macho_slots(c, &c->before, MACHO_STREAM_WEAK, &w.before, err);
    if (!rc)
        rc = exti__macho_slots(c, &c->after, MACHO_STREAM_WEAK, &w.after, err);
    if (!rc)
        rc = exti__macho_slots(c, &c->before, MACHO_STREAM_REBASE, &w.rebased, err);
    if (!rc)
        rc = bound_slots(c, &c->after, &w.bound, err);
    if (!rc) {
        exti__macho_slots_sort(&w.before);
        exti__macho_slots_sort(&w.after);
        exti__macho_slots_sort(&w.rebased);
        rc = compare_weak(c, &w, err);
    }
    exti__macho_slots_free(&w.before);
    exti__macho_slots_free(&w.after);
    exti__macho_slots_free(&w.bound);
    exti__macho_slots_free(&w.rebased);
    return rc;
}

/* ---- chained imports ----------------------------------------------------------------------------------- */

/* Slots name imports by number, so each import keeps its own. */
static int compare_imports(struct macho_check *c, const struct macho_chain_table *b,
                           const struct macho_chain_table *a, struct exti_error *err)
{
    bool weak = false;
    int rc = 0;

    if (a->imports.n != b->imports.n) {
        exti__macho_finding(c, EXTI_NO_OFFSET, "chained fixups: %zu imports, not %zu", a->imports.n,
                            b->imports.n);
        return 0;
    }
    for (size_t i = 0; !rc && i < a->imports.n && !c->stop; i++) {
        const struct macho_import *was = &b->imports.v[i], *now = &a->imports.v[i];

        weak = weak || now->ordinal == BIND_SPECIAL_DYLIB_WEAK_LOOKUP;
        if (strcmp(now->name, was->name) != 0 || now->weak != was->weak ||
            now->addend != was->addend)
            exti__macho_finding(c, now->at,
                                "import %zu: %s + %" PRId64 "%s, not %s + %" PRId64 "%s", i,
                                now->name, now->addend, now->weak ? ", weak" : "", was->name,
                                was->addend, was->weak ? ", weak" : "");
        else
            rc = check_library(c, now->name, was->ordinal, now->ordinal, err);
    }
    if (!rc && weak && c->before.flags & MH_BINDS_TO_WEAK && !(c->after.flags & MH_BINDS_TO_WEAK))
        exti__macho_finding(c, 24,
                            "header: MH_BINDS_TO_WEAK is cleared, but there are still weak "
                            "look-ups");
    return rc;
}

static void compare_starts(struct macho_check *c, const struct macho_chain_table *b,
                           const struct macho_chain_table *a)
{
    for (size_t i = 0; i < a->starts_count || i < b->starts_count; i++) {
        const struct macho_starts *was = &b->starts[i], *now = &a->starts[i];
        uint64_t move;

        if (i >= a->starts_count || i >= b->starts_count) {
            exti__macho_finding(c, EXTI_NO_OFFSET,
                                "chained fixups: chains in %zu segments, not %zu", a->starts_count,
                                b->starts_count);
            return;
        }
        move = &c->before.segments[was->segment] == c->before.text ? 0 : c->shift;
        if (now->segment != was->segment || now->page_size != was->page_size ||
            now->format != was->format || now->max_valid_pointer != was->max_valid_pointer ||
            now->segment_offset != was->segment_offset + move ||
            now->page_count != was->page_count ||
            memcmp(now->page_start.p, was->page_start.p, now->page_start.n) != 0)
            exti__macho_finding(c, a->s.base - c->after.file.base + now->at,
                                "chained fixups: where the chains of %s start is not the "
                                "original's",
                                c->before.segments[was->segment].name);
    }
}

int exti__macho_step_imports(struct macho_check *c, struct exti_error *err)
{
    struct macho_chain_table b, a;
    bool b_ok = false, a_ok = false;
    int rc;

    if (!c->before.pieces[MACHO_CHAINED_FIXUPS].present)
        return 0;
    rc = exti__macho_chain_open(c, &c->before, &b, &b_ok, err);
    if (rc)
        return rc;
    rc = exti__macho_chain_open(c, &c->after, &a, &a_ok, err);
    if (!rc && a_ok && b_ok) {
        rc = compare_imports(c, &b, &a, err);
        compare_starts(c, &b, &a);
    } else if (!rc && a_ok != b_ok) {
        exti__macho_finding(c, EXTI_NO_OFFSET, "chained fixups: cannot be compared");
    }
    exti__macho_chain_close(&b);
    exti__macho_chain_close(&a);
    return rc;
}
