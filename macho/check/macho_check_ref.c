/* Bindings: the copy has every reference of the original and no other, each bound to the library
 * that the edits lead to. */
#include "macho/check/macho_check_ref.h"

#include <inttypes.h>
#include <string.h>

#include "macho/check/macho_check_bind.h"
#include "macho/check/macho_check_chain.h"
#include "macho/check/macho_check_follow.h"
#include "macho/check/macho_check_report.h"
#include "macho/check/macho_check_weak.h"

static bool has_opcodes(const struct macho_file *f)
{
    return f->pieces[MACHO_REBASE].present;
}

/* ---- rebases --------------------------------------------------------------------------------- */

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
                                "rebases: differ from the original's from number %zu of %zu on", i,
                                b.n);
            break;
        }
    exti__macho_slots_free(&b);
    exti__macho_slots_free(&a);
    return rc;
}

/* ---- bindings, eager and lazy ---------------------------------------------------------------- */

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
        exti__macho_finding(c, EXTI_NO_OFFSET, "%s: bound lazily, but eagerly in the original",
                            now->symbol);
    /* Stub helpers pass this offset to dyld. */
    else if (now->stream == MACHO_STREAM_LAZY && now->opcode != was->opcode)
        exti__macho_finding(
            c, EXTI_NO_OFFSET,
            "%s: its lazy opcodes are at 0x%x in the stream, but its stub uses 0x%x", now->symbol,
            now->opcode, was->opcode);
    return check_library(c, now->symbol, was->ordinal, now->ordinal, err);
}

/* The next slot that no dropped weak binding wrote to; macho_check_weak.c checks the others. */
static size_t skip_dropped(const struct macho_slots *list, size_t i, uint64_t moved,
                           const struct macho_slots *dropped)
{
    while (i < list->n && exti__macho_slot_find(dropped, list->v[i].at - moved))
        i++;
    return i;
}

static int compare_bindings(struct macho_check *c, const struct macho_slots *b,
                            const struct macho_slots *a, const struct macho_slots *dropped,
                            struct exti_error *err)
{
    size_t i = skip_dropped(b, 0, 0, dropped), j = skip_dropped(a, 0, c->shift, dropped);
    int rc = 0;

    while (!rc && !c->judge.stop && (i < b->n || j < a->n)) {
        const uint64_t was = i < b->n ? b->v[i].at + c->shift : UINT64_MAX,
                       now = j < a->n ? a->v[j].at : UINT64_MAX;

        if (was < now)
            exti__macho_finding(c, EXTI_NO_OFFSET, "binding of %s at 0x%" PRIx64 " is lost",
                                b->v[i].symbol, was);
        else if (now < was)
            exti__macho_finding(c, EXTI_NO_OFFSET, "binding of %s at 0x%" PRIx64 " is new",
                                a->v[j].symbol, now);
        else
            rc = compare_binding(c, &b->v[i], &a->v[j], err);
        if (was <= now)
            i = skip_dropped(b, i + 1, 0, dropped);
        if (now <= was)
            j = skip_dropped(a, j + 1, c->shift, dropped);
    }
    return rc;
}

int exti__macho_step_opcodes(struct macho_check *c, struct exti_error *err)
{
    struct macho_slots b = {NULL, 0, 0}, a = {NULL, 0, 0}, dropped = {NULL, 0, 0};
    int rc = 0;

    if (!has_opcodes(&c->before) && !has_opcodes(&c->after))
        return 0;
    if (c->shift || !exti__macho_same_piece(c, MACHO_REBASE))
        rc = compare_rebases(c, err);
    if (!rc)
        rc = exti__macho_bound_slots(c, &c->before, &b, err);
    if (!rc)
        rc = exti__macho_bound_slots(c, &c->after, &a, err);
    if (!rc)
        rc = exti__macho_weak_dropped(c, &dropped, err);
    if (!rc)
        rc = compare_bindings(c, &b, &a, &dropped, err);
    exti__macho_slots_free(&b);
    exti__macho_slots_free(&a);
    exti__macho_slots_free(&dropped);
    return rc;
}

/* ---- chained imports ------------------------------------------------------------------------- */

/* Slots refer to imports by index, so imports keep their order. */
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
    for (size_t i = 0; !rc && i < a->imports.n && !c->judge.stop; i++) {
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
                                "chained fixups: chain starts of %s differ from the original's",
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
