/* LC_DYLD_INFO's bind, weak bind and lazy bind opcodes. */
#include "macho/read/macho_bind.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "macho/read/macho_leb.h"

#define POINTER 8u

/* The interpreter's state, as in dyld (common/MachOLayout.cpp, forEachBind_Opcodes*). */
struct machine {
    const struct macho_file *f;
    enum macho_piece_kind kind;
    struct exti_cur c;
    uint8_t opcode, immediate, type, flags;
    bool has_segment, has_ordinal, done;
    uint32_t segment;
    uint64_t offset;
    const char *symbol;
    int64_t addend;
    int32_t ordinal;
    uint64_t slice_at;                  /* the stream's slice offset */
    uint64_t at, ordinal_at, symbol_at; /* offsets of opcodes in the stream */
    /* dyld opens a new target only at the first binding after a symbol or addend opcode.  An
     * ordinal opcode alone has no effect until then. */
    bool target_changed;
    struct macho_bind target;
    uint64_t left; /* how many more bindings are allowed */
    int (*each)(void *user, const struct macho_bind *b, struct exti_error *err);
    void *user;
};

static const char *stream_name(enum macho_piece_kind kind)
{
    return kind == MACHO_BIND        ? "bind opcodes"
           : kind == MACHO_WEAK_BIND ? "weak bind opcodes"
                                     : "lazy bind opcodes";
}

#define fail_opcode(m, err, ...)                                                                   \
    exti__fail(err, EXTI_E_FORMAT, (m)->c.s.base + (m)->at, __VA_ARGS__)

/* The checks of dyld's BindOpcodes::valid. */
static int check_bind(const struct machine *m, struct exti_error *err)
{
    const char *name = stream_name(m->kind);
    const struct macho_segment *s = &m->f->segments[m->segment];

    if (!m->left)
        return fail_opcode(m, err, "%s: more bindings than the file has room for", name);
    if (!m->has_segment)
        return fail_opcode(m, err, "%s: a binding before a segment is set", name);
    if (!m->has_ordinal)
        return fail_opcode(m, err, "%s: a binding before a library is set", name);
    if (!m->symbol)
        return fail_opcode(m, err, "%s: a binding before a symbol is set", name);
    if (m->type != BIND_TYPE_POINTER)
        return fail_opcode(m, err, "%s: binding type %u is not POINTER", name, m->type);
    if (s->vmsize < POINTER || m->offset > s->vmsize - POINTER)
        return fail_opcode(m, err, "%s: offset 0x%" PRIx64 " is outside of %s", name, m->offset,
                           s->name);
    return 0;
}

static int bind_slot(struct machine *m, struct exti_error *err)
{
    int rc = check_bind(m, err);

    if (rc)
        return rc;
    m->left--;
    if (m->target_changed || m->kind == MACHO_LAZY_BIND)
        m->target = (struct macho_bind){
            .symbol = m->symbol,
            .addend = m->addend,
            .ordinal = m->ordinal,
            .type = m->type,
            .flags = m->flags,
            .at = m->slice_at + (m->kind == MACHO_WEAK_BIND ? m->symbol_at : m->ordinal_at)};
    m->target_changed = false;
    m->target.segment = m->segment;
    m->target.offset = m->offset;
    return m->each(m->user, &m->target, err);
}

static int set_ordinal(struct machine *m, uint64_t ordinal, bool special, struct exti_error *err)
{
    /* dyld gives a file without libraries libSystem as library 1. */
    uint64_t max = m->f->dylib_count ? m->f->dylib_count : 1;

    if (m->kind == MACHO_WEAK_BIND)
        return fail_opcode(m, err, "weak bind opcodes: a library is set");
    if (special ? ordinal && ordinal < 0xd : ordinal > max)
        return fail_opcode(m, err, "%s: library %s%" PRIu64 " of %zu", stream_name(m->kind),
                           special ? "-" : "", special ? 16 - ordinal : ordinal, m->f->dylib_count);
    m->ordinal = (int32_t)ordinal - (special && ordinal ? 16 : 0);
    m->has_ordinal = true;
    m->ordinal_at = m->at;
    return 0;
}

static int set_symbol(struct machine *m, struct exti_error *err)
{
    struct macho_bind mark = {.is_override = true};
    int rc;

    m->symbol_at = m->at;
    m->flags = m->immediate;
    m->symbol = exti__macho_cur_cstr(&m->c);
    m->target_changed = true;
    rc = exti__cur_end(&m->c, stream_name(m->kind), err);
    if (rc || m->kind != MACHO_WEAK_BIND || !(m->flags & BIND_SYMBOL_FLAGS_NON_WEAK_DEFINITION))
        return rc;
    mark.symbol = m->symbol;
    mark.flags = m->flags;
    mark.at = m->slice_at + m->at;
    return m->each(m->user, &mark, err);
}

static int set_place(struct machine *m, struct exti_error *err)
{
    m->offset = exti__macho_uleb(&m->c);
    if (m->immediate >= m->f->segment_count)
        return fail_opcode(m, err, "%s: segment %u of %zu", stream_name(m->kind), m->immediate,
                           m->f->segment_count);
    m->segment = m->immediate;
    m->has_segment = true;
    return 0;
}

static int bind_times(struct machine *m, struct exti_error *err)
{
    uint64_t count = exti__macho_uleb(&m->c), skip = exti__macho_uleb(&m->c);
    int rc = exti__cur_end(&m->c, stream_name(m->kind), err);

    for (uint64_t i = 0; !rc && i < count; i++) {
        rc = bind_slot(m, err);
        m->offset += skip + POINTER;
    }
    return rc;
}

/* The opcodes that dyld refuses in a lazy stream. */
static int run_eager_opcode(struct machine *m, struct exti_error *err)
{
    uint64_t skip;
    int rc;

    switch (m->kind == MACHO_LAZY_BIND ? BIND_OPCODE_MASK : m->opcode) {
    case BIND_OPCODE_SET_TYPE_IMM:
        m->type = m->immediate;
        return 0;
    case BIND_OPCODE_ADD_ADDR_ULEB:
        m->offset += exti__macho_uleb(&m->c);
        return 0;
    case BIND_OPCODE_DO_BIND_ADD_ADDR_ULEB:
        skip = exti__macho_uleb(&m->c);
        rc = exti__cur_end(&m->c, stream_name(m->kind), err);
        if (!rc)
            rc = bind_slot(m, err);
        m->offset += skip + POINTER;
        return rc;
    case BIND_OPCODE_DO_BIND_ADD_ADDR_IMM_SCALED:
        rc = bind_slot(m, err);
        m->offset += m->immediate * POINTER + POINTER;
        return rc;
    case BIND_OPCODE_DO_BIND_ULEB_TIMES_SKIPPING_ULEB:
        return bind_times(m, err);
    case BIND_OPCODE_THREADED:
        return exti__fail(err, EXTI_E_UNSUPPORTED, m->c.s.base + m->at,
                          "%s: arm64e's threaded binding is not handled", stream_name(m->kind));
    default:
        return fail_opcode(m, err, "%s: opcode 0x%02x", stream_name(m->kind),
                           m->opcode | m->immediate);
    }
}

static int run_opcode(struct machine *m, struct exti_error *err)
{
    int rc;

    m->at = m->c.at;
    m->opcode = exti__cur_u8(&m->c);
    m->immediate = m->opcode & BIND_IMMEDIATE_MASK;
    m->opcode &= BIND_OPCODE_MASK;
    switch (m->opcode) {
    case BIND_OPCODE_DONE:
        /* In a lazy stream, DONE ends one symbol's opcodes, not the stream. */
        m->done = m->kind != MACHO_LAZY_BIND;
        return 0;
    case BIND_OPCODE_SET_DYLIB_ORDINAL_IMM:
        return set_ordinal(m, m->immediate, false, err);
    case BIND_OPCODE_SET_DYLIB_ORDINAL_ULEB:
        return set_ordinal(m, exti__macho_uleb(&m->c), false, err);
    case BIND_OPCODE_SET_DYLIB_SPECIAL_IMM:
        return set_ordinal(m, m->immediate, true, err);
    case BIND_OPCODE_SET_SYMBOL_TRAILING_FLAGS_IMM:
        return set_symbol(m, err);
    case BIND_OPCODE_SET_ADDEND_SLEB:
        m->addend = exti__macho_sleb(&m->c);
        m->target_changed = true;
        return 0;
    case BIND_OPCODE_SET_SEGMENT_AND_OFFSET_ULEB:
        return set_place(m, err);
    case BIND_OPCODE_DO_BIND:
        rc = bind_slot(m, err);
        m->offset += POINTER;
        return rc;
    default:
        return run_eager_opcode(m, err);
    }
}

int exti__macho_binds(const struct macho_file *f, enum macho_piece_kind kind,
                      int (*each)(void *user, const struct macho_bind *b, struct exti_error *err),
                      void *user, struct exti_error *err)
{
    struct machine m = {.f = f,
                        .kind = kind,
                        .c = exti__cur(f->pieces[kind].s, false),
                        .slice_at = f->pieces[kind].s.base - f->file.base,
                        .type = kind == MACHO_BIND ? (uint8_t)0 : (uint8_t)BIND_TYPE_POINTER,
                        .has_ordinal = kind == MACHO_WEAK_BIND,
                        .ordinal = kind == MACHO_WEAK_BIND ? BIND_SPECIAL_DYLIB_WEAK_LOOKUP : 0,
                        .left = f->file.n / POINTER + f->pieces[kind].s.n,
                        .each = each,
                        .user = user};
    int rc = 0;

    while (!rc && !m.done && m.c.at < m.c.s.n) {
        rc = run_opcode(&m, err);
        if (!rc)
            rc = exti__cur_end(&m.c, stream_name(kind), err);
    }
    return rc;
}
