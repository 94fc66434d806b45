/* LC_DYLD_INFO's rebase opcodes. */
#include "macho/read/macho_rebase.h"

#include <inttypes.h>

#include "base/error.h"
#include "macho/read/macho_leb.h"

#define POINTER 8u
#define REBASE_TYPE_MAX 3u

/* The interpreter's state, as in dyld's forEachRebase_Opcodes. */
struct machine {
    const struct macho_file *f;
    struct exti_cur c;
    uint64_t at; /* the opcode's offset in the stream */
    uint8_t type;
    bool has_segment, done;
    uint32_t segment;
    uint64_t offset;
    uint64_t left; /* how many more slots are allowed */
    int (*each)(void *user, uint32_t segment, uint64_t offset, uint8_t type,
                struct exti_error *err);
    void *user;
};

#define fail_rebase(m, err, ...)                                                                   \
    exti__fail(err, EXTI_E_FORMAT, (m)->c.s.base + (m)->at, __VA_ARGS__)

/* Rebases `count` slots, with `skip` bytes between them. */
static int rebase_slots(struct machine *m, uint64_t count, uint64_t skip, struct exti_error *err)
{
    int rc = exti__cur_end(&m->c, "rebase opcodes", err);

    for (uint64_t i = 0; !rc && i < count; i++) {
        const struct macho_segment *s = &m->f->segments[m->segment];

        if (!m->left--)
            return fail_rebase(m, err, "rebase opcodes: more slots than the file has room for");
        if (!m->has_segment)
            return fail_rebase(m, err, "rebase opcodes: a slot before a segment is set");
        if (!m->type || m->type > REBASE_TYPE_MAX)
            return fail_rebase(m, err, "rebase opcodes: slot type %u", m->type);
        if (s->vmsize < POINTER || m->offset > s->vmsize - POINTER)
            return fail_rebase(m, err, "rebase opcodes: offset 0x%" PRIx64 " is outside of %s",
                               m->offset, s->name);
        rc = m->each(m->user, m->segment, m->offset, m->type, err);
        m->offset += POINTER + skip;
    }
    return rc;
}

static int set_rebase_place(struct machine *m, uint8_t segment, struct exti_error *err)
{
    m->offset = exti__macho_uleb(&m->c);
    if (segment >= m->f->segment_count)
        return fail_rebase(m, err, "rebase opcodes: segment %u of %zu", segment,
                           m->f->segment_count);
    m->segment = segment;
    m->has_segment = true;
    return 0;
}

static int run_rebase_opcode(struct machine *m, struct exti_error *err)
{
    uint8_t byte, immediate;
    uint64_t count, skip;

    m->at = m->c.at;
    byte = exti__cur_u8(&m->c);
    immediate = byte & REBASE_IMMEDIATE_MASK;
    switch (byte & REBASE_OPCODE_MASK) {
    case REBASE_OPCODE_DONE:
        m->done = true;
        return 0;
    case REBASE_OPCODE_SET_TYPE_IMM:
        m->type = immediate;
        return 0;
    case REBASE_OPCODE_SET_SEGMENT_AND_OFFSET_ULEB:
        return set_rebase_place(m, immediate, err);
    case REBASE_OPCODE_ADD_ADDR_ULEB:
        m->offset += exti__macho_uleb(&m->c);
        return 0;
    case REBASE_OPCODE_ADD_ADDR_IMM_SCALED:
        m->offset += immediate * POINTER;
        return 0;
    case REBASE_OPCODE_DO_REBASE_IMM_TIMES:
        return rebase_slots(m, immediate, 0, err);
    case REBASE_OPCODE_DO_REBASE_ULEB_TIMES:
        return rebase_slots(m, exti__macho_uleb(&m->c), 0, err);
    case REBASE_OPCODE_DO_REBASE_ADD_ADDR_ULEB:
        return rebase_slots(m, 1, exti__macho_uleb(&m->c), err);
    case REBASE_OPCODE_DO_REBASE_ULEB_TIMES_SKIPPING_ULEB:
        count = exti__macho_uleb(&m->c);
        skip = exti__macho_uleb(&m->c);
        return rebase_slots(m, count, skip, err);
    default:
        return fail_rebase(m, err, "rebase opcodes: opcode 0x%02x", byte);
    }
}

int exti__macho_rebases(const struct macho_file *f,
                        int (*each)(void *user, uint32_t segment, uint64_t offset, uint8_t type,
                                    struct exti_error *err),
                        void *user, struct exti_error *err)
{
    struct machine m = {.f = f,
                        .c = exti__cur(f->pieces[MACHO_REBASE].s, false),
                        .left = f->file.n / POINTER + f->pieces[MACHO_REBASE].s.n,
                        .each = each,
                        .user = user};
    int rc = 0;

    while (!rc && !m.done && m.c.at < m.c.s.n) {
        rc = run_rebase_opcode(&m, err);
        if (!rc)
            rc = exti__cur_end(&m.c, "rebase opcodes", err);
    }
    return rc;
}
