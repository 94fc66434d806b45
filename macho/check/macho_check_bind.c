/* LC_DYLD_INFO's opcodes, decoded a second time, and dyld's rules for them
 * (mach_o/BindOpcodes.cpp, RebaseOpcodes.cpp: valid). */
#include "macho/check/macho_check_bind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/check/macho_check_report.h"
#include "macho/read/macho_pieces.h"

#define POINTER 8

struct machine {
    struct macho_check *c;
    const struct macho_file *f;
    struct macho_slots *out;
    struct exti_span s;
    size_t at;
    enum macho_stream stream;
    const char *name; /* the stream's name */
    uint64_t most;    /* how many slots the file can have */

    struct macho_slot now; /* what the next binding opcode writes */
    struct macho_slot target;
    uint64_t offset; /* offset in the segment */
    uint32_t segment;
    bool has_segment, has_ordinal, is_new_target, done, bad;
};

/* ---- lists ----------------------------------------------------------------------------------- */

int exti__macho_slot_add(struct macho_slots *list, struct macho_slot s, struct exti_error *err)
{
    struct macho_slot *v = exti__array_room(list->v, list->n, &list->cap, sizeof *v);

    if (!v)
        return exti__fail_nomem(err);
    list->v = v;
    s.order = (uint32_t)list->n;
    list->v[list->n++] = s;
    return 0;
}

static int by_slot_place(const void *a, const void *b)
{
    const struct macho_slot *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

void exti__macho_slots_sort(struct macho_slots *list)
{
    for (size_t i = 1; i < list->n; i++)
        if (list->v[i].at < list->v[i - 1].at) {
            qsort(list->v, list->n, sizeof *list->v, by_slot_place);
            return;
        }
}

const struct macho_slot *exti__macho_slot_find(const struct macho_slots *list, uint64_t at)
{
    size_t low = 0, high = list->n;

    /* If several opcodes write to one address, the last one wins. */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (list->v[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low && list->v[low - 1].at == at ? &list->v[low - 1] : NULL;
}

void exti__macho_slots_free(struct macho_slots *list)
{
    exti__free(list->v);
    *list = (struct macho_slots){NULL, 0, 0};
}

/* ---- reading --------------------------------------------------------------------------------- */

static void report_opcode_fault(struct machine *m, const char *what)
{
    if (m->bad)
        return;
    m->bad = true;
    exti__macho_broken(
        m->c, m->f, m->s.base - m->f->file.base + m->at, what, "dyld %s: %s + 0x%zx: %s",
        m->stream == MACHO_STREAM_REBASE ? "RebaseOpcodes::valid" : "BindOpcodes::valid", m->name,
        m->at, what);
}

static uint64_t read_uleb(struct machine *m)
{
    uint64_t v = 0;

    for (unsigned shift = 0; m->at < m->s.n; shift += 7) {
        const uint8_t byte = m->s.p[m->at++];

        if (shift > 63 || (shift == 63 && byte & 0x7e)) {
            report_opcode_fault(m, "a number has more than 64 bits");
            return 0;
        }
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    report_opcode_fault(m, "a number runs past the end");
    return 0;
}

static int64_t read_sleb(struct machine *m)
{
    uint64_t v = 0;
    unsigned shift = 0;

    while (m->at < m->s.n && shift < 64) {
        const uint8_t byte = m->s.p[m->at++];

        v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80)
            continue;
        if (byte & 0x40 && shift < 64)
            v |= ~(uint64_t)0 << shift;
        return (int64_t)v;
    }
    report_opcode_fault(m, "a signed number runs past the end or 64 bits");
    return 0;
}

static const char *read_symbol_name(struct machine *m)
{
    const char *s = (const char *)m->s.p + m->at;
    const void *nul = m->at < m->s.n ? memchr(s, 0, m->s.n - m->at) : NULL;

    if (!nul) {
        report_opcode_fault(m, "a symbol name has no NUL");
        return "";
    }
    m->at += strlen(s) + 1;
    return s;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void check_slot_place(struct machine *m)
{
    const struct macho_segment *s;

    if (!m->has_segment) {
        report_opcode_fault(m, "no segment is set");
        return;
    }
    s = &m->f->segments[m->segment];
    if (s->vmsize < POINTER || m->offset > s->vmsize - POINTER)
        report_opcode_fault(m, "the slot is outside its segment");
    if (exti__macho_gate(m->f, MACHO_SDK(10, 15)) &&
        (!(s->initprot & VM_PROT_WRITE) || s->initprot & VM_PROT_EXECUTE))
        report_opcode_fault(
            m, "the segment must be writable and not executable (SDK 10.15 and later)");
}

static void check_bind_target(struct machine *m)
{
    if (!m->now.symbol)
        report_opcode_fault(m, "no symbol is set");
    if (m->now.type != BIND_TYPE_POINTER)
        report_opcode_fault(m, "the type is not POINTER");
    if (m->stream == MACHO_STREAM_WEAK)
        return;
    if (!m->has_ordinal)
        report_opcode_fault(m, "no library ordinal is set");
    if (m->now.ordinal < BIND_SPECIAL_DYLIB_WEAK_LOOKUP ||
        (m->now.ordinal > 0 && (size_t)m->now.ordinal > exti__macho_most_ordinal(m->f)))
        report_opcode_fault(m, "the library ordinal is out of range");
    /* dyld opens a new target only after a symbol or addend opcode (MachOLayout.cpp). */
    if (!m->is_new_target && m->target.ordinal != m->now.ordinal)
        report_opcode_fault(
            m, "the library ordinal changes without a new symbol opcode, so dyld ignores it");
}

static int put_slot(struct machine *m, struct exti_error *err)
{
    struct macho_slot s = m->now;

    check_slot_place(m);
    if (m->stream != MACHO_STREAM_REBASE) {
        check_bind_target(m);
        if (m->is_new_target)
            m->target = m->now;
        m->is_new_target = false;
        s.ordinal = m->target.ordinal;
    } else if (m->now.type != REBASE_TYPE_POINTER) {
        report_opcode_fault(m, "the type is not POINTER");
    }
    if (m->out->n >= m->most)
        report_opcode_fault(m, "more slots than fit into the file");
    if (m->bad)
        return 0;
    s.at = m->f->segments[m->segment].vmaddr + m->offset - m->f->text->vmaddr;
    return exti__macho_slot_add(m->out, s, err);
}

static int put_slots(struct machine *m, uint64_t count, uint64_t skip, struct exti_error *err)
{
    int rc = 0;

    for (uint64_t i = 0; !rc && !m->bad && i < count; i++) {
        rc = put_slot(m, err);
        m->offset += skip + POINTER;
    }
    return rc;
}

/* ..._TIMES_SKIPPING_ULEB: how many, then how far apart. */
static int put_spaced_slots(struct machine *m, struct exti_error *err)
{
    const uint64_t count = read_uleb(m), skip = read_uleb(m);

    return put_slots(m, count, skip, err);
}

static void set_segment(struct machine *m, uint32_t segment, size_t opcode)
{
    if (segment >= m->f->segment_count)
        report_opcode_fault(m, "there is no such segment");
    m->segment = segment;
    m->has_segment = !m->bad;
    m->offset = read_uleb(m);
    m->now.opcode = (uint32_t)opcode;
}

/* ---- the opcodes ----------------------------------------------------------------------------- */

static int rebase_opcode(struct machine *m, uint8_t opcode, uint8_t imm, struct exti_error *err)
{
    switch (opcode) {
    case REBASE_OPCODE_DONE:
        m->done = true;
        return 0;
    case REBASE_OPCODE_SET_TYPE_IMM:
        m->now.type = imm;
        return 0;
    case REBASE_OPCODE_SET_SEGMENT_AND_OFFSET_ULEB:
        set_segment(m, imm, m->at - 1);
        return 0;
    case REBASE_OPCODE_ADD_ADDR_ULEB:
        m->offset += read_uleb(m);
        return 0;
    case REBASE_OPCODE_ADD_ADDR_IMM_SCALED:
        m->offset += (uint64_t)imm * POINTER;
        return 0;
    case REBASE_OPCODE_DO_REBASE_IMM_TIMES:
        return put_slots(m, imm, 0, err);
    case REBASE_OPCODE_DO_REBASE_ULEB_TIMES:
        return put_slots(m, read_uleb(m), 0, err);
    case REBASE_OPCODE_DO_REBASE_ADD_ADDR_ULEB:
        return put_slots(m, 1, read_uleb(m), err);
    case REBASE_OPCODE_DO_REBASE_ULEB_TIMES_SKIPPING_ULEB:
        return put_spaced_slots(m, err);
    default:
        report_opcode_fault(m, "unknown opcode");
        return 0;
    }
}

static void set_ordinal(struct machine *m, uint64_t ordinal)
{
    if (m->stream == MACHO_STREAM_WEAK)
        report_opcode_fault(m, "a library ordinal in the weak stream");
    if (ordinal > INT32_MAX)
        report_opcode_fault(m, "the library ordinal is out of range");
    m->now.ordinal = (int32_t)ordinal;
    m->has_ordinal = true;
}

static int set_symbol(struct machine *m, uint8_t imm, struct exti_error *err)
{
    struct macho_slot mark;

    m->now.symbol = read_symbol_name(m);
    m->now.flags = imm;
    m->is_new_target = true;
    if (m->stream != MACHO_STREAM_WEAK || !(imm & BIND_SYMBOL_FLAGS_NON_WEAK_DEFINITION) || m->bad)
        return 0;
    /* Marks a strong definition in this image; binds nothing. */
    mark = m->now;
    mark.at = UINT64_MAX;
    return exti__macho_slot_add(m->out, mark, err);
}

static int do_bind(struct machine *m, uint8_t opcode, uint8_t imm, struct exti_error *err)
{
    if (m->stream == MACHO_STREAM_LAZY && opcode != BIND_OPCODE_DO_BIND)
        report_opcode_fault(m, "the opcode is not allowed in the lazy stream");
    switch (opcode) {
    case BIND_OPCODE_DO_BIND:
        return put_slots(m, 1, 0, err);
    case BIND_OPCODE_DO_BIND_ADD_ADDR_ULEB:
        return put_slots(m, 1, read_uleb(m), err);
    case BIND_OPCODE_DO_BIND_ADD_ADDR_IMM_SCALED:
        return put_slots(m, 1, (uint64_t)imm * POINTER, err);
    case BIND_OPCODE_DO_BIND_ULEB_TIMES_SKIPPING_ULEB:
        return put_spaced_slots(m, err);
    default:
        report_opcode_fault(m, "unknown opcode");
        return 0;
    }
}

static int bind_opcode(struct machine *m, uint8_t opcode, uint8_t imm, struct exti_error *err)
{
    switch (opcode) {
    case BIND_OPCODE_DONE:
        m->done = m->stream != MACHO_STREAM_LAZY;
        return 0;
    case BIND_OPCODE_SET_DYLIB_ORDINAL_IMM:
        set_ordinal(m, imm);
        return 0;
    case BIND_OPCODE_SET_DYLIB_ORDINAL_ULEB:
        set_ordinal(m, read_uleb(m));
        return 0;
    case BIND_OPCODE_SET_DYLIB_SPECIAL_IMM:
        set_ordinal(m, 0);
        m->now.ordinal = imm ? (int32_t)imm - 16 : 0;
        return 0;
    case BIND_OPCODE_SET_SYMBOL_TRAILING_FLAGS_IMM:
        return set_symbol(m, imm, err);
    case BIND_OPCODE_SET_TYPE_IMM:
        m->now.type = imm;
        return 0;
    case BIND_OPCODE_SET_ADDEND_SLEB:
        m->now.addend = read_sleb(m);
        m->is_new_target = true;
        return 0;
    case BIND_OPCODE_SET_SEGMENT_AND_OFFSET_ULEB:
        set_segment(m, imm, m->at - 1);
        return 0;
    case BIND_OPCODE_ADD_ADDR_ULEB:
        m->offset += read_uleb(m);
        return 0;
    default:
        return do_bind(m, opcode, imm, err);
    }
}

static const enum macho_piece_kind piece_of[] = {
    [MACHO_STREAM_REBASE] = MACHO_REBASE,
    [MACHO_STREAM_BIND] = MACHO_BIND,
    [MACHO_STREAM_LAZY] = MACHO_LAZY_BIND,
    [MACHO_STREAM_WEAK] = MACHO_WEAK_BIND,
};

int exti__macho_slots(struct macho_check *c, const struct macho_file *f, enum macho_stream stream,
                      struct macho_slots *out, struct exti_error *err)
{
    struct machine m = {.c = c,
                        .f = f,
                        .out = out,
                        .s = f->pieces[piece_of[stream]].s,
                        .stream = stream,
                        .name = exti__macho_piece_name(piece_of[stream]),
                        .most = out->n + f->file.n / 4 + 16};
    int rc = 0;

    m.now.stream = (uint8_t)stream;
    if (stream == MACHO_STREAM_LAZY)
        m.now.type = BIND_TYPE_POINTER;
    while (!rc && !m.done && !m.bad && m.at < m.s.n) {
        const uint8_t byte = m.s.p[m.at++];

        if (stream == MACHO_STREAM_REBASE)
            rc = rebase_opcode(&m, byte & REBASE_OPCODE_MASK, byte & REBASE_IMMEDIATE_MASK, err);
        else
            rc = bind_opcode(&m, byte & BIND_OPCODE_MASK, byte & BIND_IMMEDIATE_MASK, err);
    }
    return rc;
}

int exti__macho_bound_slots(struct macho_check *c, const struct macho_file *f,
                            struct macho_slots *out, struct exti_error *err)
{
    int rc = exti__macho_slots(c, f, MACHO_STREAM_BIND, out, err);

    if (!rc)
        rc = exti__macho_slots(c, f, MACHO_STREAM_LAZY, out, err);
    exti__macho_slots_sort(out);
    return rc;
}

int exti__macho_rule_opcodes(struct macho_check *c, const struct macho_file *f,
                             struct exti_error *err)
{
    int rc = 0;

    for (int i = MACHO_STREAM_REBASE; !rc && i <= MACHO_STREAM_WEAK; i++) {
        struct macho_slots list = {NULL, 0, 0};

        if (exti__macho_settled(c, f, piece_of[i]) && c->after.dylib_count >= c->before.dylib_count)
            continue;
        rc = exti__macho_slots(c, f, (enum macho_stream)i, &list, err);
        exti__macho_slots_free(&list);
    }
    return rc;
}
