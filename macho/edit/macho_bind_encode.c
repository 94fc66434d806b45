/* Writing LC_DYLD_INFO's bind opcodes. */
#include "macho/edit/macho_bind_encode.h"

#include <string.h>

#include "macho/edit/macho_put_leb.h"
#include "macho/read/macho_bind.h"

#define POINTER 8u

static int put_opcode(struct exti_buf *out, unsigned opcode, struct exti_error *err)
{
    uint8_t byte = (uint8_t)opcode;

    return exti__buf_append(out, &byte, 1, err);
}

static int put_ordinal(struct exti_buf *out, int32_t ordinal, struct exti_error *err)
{
    int rc;

    if (ordinal <= 0)
        return put_opcode(
            out, BIND_OPCODE_SET_DYLIB_SPECIAL_IMM | ((unsigned)ordinal & BIND_IMMEDIATE_MASK),
            err);
    if (ordinal <= 15)
        return put_opcode(out, BIND_OPCODE_SET_DYLIB_ORDINAL_IMM | (unsigned)ordinal, err);
    rc = put_opcode(out, BIND_OPCODE_SET_DYLIB_ORDINAL_ULEB, err);
    return rc ? rc : exti__macho_put_uleb(out, (uint64_t)ordinal, err);
}

/* The interpreter's state after the opcodes written so far. */
struct encoder {
    struct exti_buf *out;
    bool weak, has_ordinal, has_type;
    const struct macho_bind *named; /* the last symbol opcode's symbol and flags; NULL: none */
    int32_t ordinal;
    int64_t addend;
    bool has_place;
    uint32_t segment;
    uint64_t offset;
};

/* Compares pointers: comparing text would read a long name once per binding. */
static bool same_symbol(const struct macho_bind *a, const struct macho_bind *b)
{
    return a->flags == b->flags && a->symbol == b->symbol;
}

static int put_target(struct encoder *e, const struct macho_bind *b, struct exti_error *err)
{
    bool other_library = !e->weak && (!e->has_ordinal || e->ordinal != b->ordinal);
    int rc = other_library ? put_ordinal(e->out, b->ordinal, err) : 0;

    /* dyld ignores a new ordinal unless a symbol opcode follows. */
    if (!rc && (other_library || !e->named || !same_symbol(b, e->named))) {
        rc = put_opcode(e->out, BIND_OPCODE_SET_SYMBOL_TRAILING_FLAGS_IMM | b->flags, err);
        if (!rc)
            rc = exti__buf_append(e->out, b->symbol, strlen(b->symbol) + 1, err);
        e->named = b;
    }
    e->ordinal = b->ordinal;
    e->has_ordinal = true;
    if (rc || b->is_override)
        return rc;
    if (!e->has_type)
        rc = put_opcode(e->out, BIND_OPCODE_SET_TYPE_IMM | b->type, err);
    e->has_type = true;
    if (!rc && b->addend != e->addend) {
        rc = put_opcode(e->out, BIND_OPCODE_SET_ADDEND_SLEB, err);
        if (!rc)
            rc = exti__macho_put_sleb(e->out, b->addend, err);
    }
    e->addend = b->addend;
    return rc;
}

static int put_place(struct encoder *e, const struct macho_bind *b, struct exti_error *err)
{
    bool near = e->has_place && e->segment == b->segment && e->offset <= b->offset;
    uint64_t by = near ? b->offset - e->offset : b->offset;
    int rc = 0;

    if (!near)
        rc = put_opcode(e->out, BIND_OPCODE_SET_SEGMENT_AND_OFFSET_ULEB | b->segment, err);
    else if (by)
        rc = put_opcode(e->out, BIND_OPCODE_ADD_ADDR_ULEB, err);
    if (!rc && (by || !near))
        rc = exti__macho_put_uleb(e->out, by, err);
    e->has_place = true;
    e->segment = b->segment;
    e->offset = b->offset;
    return rc;
}

/* How many bindings from the list's start have the same target at even distances.  *skip is the
 * distance between two slots. */
static size_t run_length(const struct macho_bind *list, size_t count, uint64_t *skip)
{
    size_t n = 1;

    *skip = count > 1 ? list[1].offset - list->offset - POINTER : 0;
    while (n < count && !list[n].is_override && same_symbol(&list[n], list) &&
           list[n].ordinal == list->ordinal && list[n].addend == list->addend &&
           list[n].segment == list->segment &&
           list[n].offset - list[n - 1].offset == *skip + POINTER)
        n++;
    return n;
}

/* Binds as many of the list as one opcode can; *done is their number. */
static int put_run(struct encoder *e, const struct macho_bind *list, size_t count, size_t *done,
                   struct exti_error *err)
{
    uint64_t skip;
    size_t n = run_length(list, count, &skip);
    int rc;

    if (n < 3) {
        *done = 1;
        e->offset += POINTER;
        return put_opcode(e->out, BIND_OPCODE_DO_BIND, err);
    }
    *done = n;
    e->offset += n * (skip + POINTER);
    rc = put_opcode(e->out, BIND_OPCODE_DO_BIND_ULEB_TIMES_SKIPPING_ULEB, err);
    if (!rc)
        rc = exti__macho_put_uleb(e->out, n, err);
    return rc ? rc : exti__macho_put_uleb(e->out, skip, err);
}

int exti__macho_bind_encode(const struct macho_bind *list, size_t count, bool weak,
                            struct exti_buf *out, struct exti_error *err)
{
    struct encoder e = {.out = out, .weak = weak};
    size_t done;

    for (size_t i = 0; i < count; i += done) {
        int rc = put_target(&e, &list[i], err);

        done = 1;
        if (!rc && !list[i].is_override) {
            rc = put_place(&e, &list[i], err);
            if (!rc)
                rc = put_run(&e, &list[i], count - i, &done, err);
        }
        if (rc)
            return rc;
    }
    return 0;
}
