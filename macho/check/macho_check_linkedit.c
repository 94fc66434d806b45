/* __LINKEDIT: dyld's rules that exti__macho_open does not enforce
 * (Header::validStructureLinkedit; bounds, overlap and LC_DYSYMTAB's counts it does), and the
 * order that Apple's editing tools expect (cctools checkout.c, dyld_order). */
#include "macho/check/macho_check_linkedit.h"

#include <inttypes.h>
#include <string.h>

#include "macho/check/macho_check_report.h"
#include "macho/read/macho_pieces.h"
#include "macho/read/macho_word.h"

static uint32_t command_field(const struct macho_file *f, size_t command, size_t at)
{
    const struct exti_span s = f->commands[command].s;

    return at + 4 <= s.n ? exti__macho_u32(s.p + at) : 0;
}

static uint64_t start_of(const struct macho_file *f, enum macho_piece_kind kind)
{
    return command_field(f, f->pieces[kind].command, f->pieces[kind].off_at);
}

/* ---- places ---------------------------------------------------------------------------------- */

static uint64_t demanded_alignment(const struct macho_file *f, enum macho_piece_kind kind)
{
    switch (kind) {
    case MACHO_STRINGS:
        return 1;
    case MACHO_INDIRECT_SYMBOLS:
    case MACHO_LOCAL_RELOCS:
    case MACHO_EXTERNAL_RELOCS:
    case MACHO_TOC:
    case MACHO_MODULES:
    case MACHO_EXTERNAL_REFS:
    case MACHO_TWOLEVEL_HINTS:
        return 4;
    case MACHO_SIGNATURE:
        return exti__macho_gate(f, MACHO_SDK(10, 15)) ? 16 : 1;
    default:
        return exti__macho_gate(f, MACHO_SDK(10, 14)) ? 8 : 1;
    }
}

static void check_piece_alignment(struct macho_check *c, const struct macho_file *f,
                                  enum macho_piece_kind kind)
{
    const uint64_t at = start_of(f, kind), align = demanded_alignment(f, kind);
    const char *name = exti__macho_piece_name(kind);

    if (at % align)
        exti__macho_broken(c, f, at, name,
                           "dyld validStructureLinkedit (SDK 10.14 and later): the %s at 0x%" PRIx64
                           " are not aligned to %" PRIu64,
                           name, at, align);
}

int exti__macho_rule_blobs(struct macho_check *c, const struct macho_file *f,
                           struct exti_error *err)
{
    (void)err;
    for (int i = 0; i < MACHO_PIECES; i++)
        if (f->pieces[i].s.n)
            check_piece_alignment(c, f, (enum macho_piece_kind)i);
    return 0;
}

/* Whether cctools accepts a piece at `start` if the previous one ends at `at`. */
static bool expected_at(const struct macho_file *f, enum macho_piece_kind kind, uint64_t at,
                        uint64_t start)
{
    if (kind == MACHO_STRINGS && f->pieces[MACHO_INDIRECT_SYMBOLS].s.n % 8)
        return start == at || start == ((at + 7) & ~(uint64_t)7);
    if (kind == MACHO_SIGNATURE)
        return start == ((at + 15) & ~(uint64_t)15);
    return start == at;
}

int exti__macho_rule_order(struct macho_check *c, const struct macho_file *f,
                           struct exti_error *err)
{
    uint64_t at = f->linkedit->fileoff;

    (void)err;
    for (int i = 0; i < MACHO_PIECES; i++) {
        const enum macho_piece_kind kind = (enum macho_piece_kind)i;
        uint64_t start;

        /* checkout.c checks the offset even of an empty LC_DATA_IN_CODE. */
        if (!f->pieces[i].present || (!f->pieces[i].s.n && kind != MACHO_DATA_IN_CODE))
            continue;
        start = start_of(f, kind);
        if (!expected_at(f, kind, at, start))
            exti__macho_broken(c, f, start, exti__macho_piece_name(kind),
                               "__LINKEDIT: the %s are at 0x%" PRIx64 ", not at 0x%" PRIx64
                               ", where cctools (checkout.c, dyld_order) expects them",
                               exti__macho_piece_name(kind), start, at);
        at = start + f->pieces[i].s.n;
    }
    if (at != f->linkedit->fileoff + f->linkedit->filesize)
        exti__macho_broken(c, f, at, "end",
                           "__LINKEDIT ends at 0x%" PRIx64 ", its last table at 0x%" PRIx64,
                           f->linkedit->fileoff + f->linkedit->filesize, at);
    return 0;
}

/* ---- symbols --------------------------------------------------------------------------------- */

static void check_symbol_entry(struct macho_check *c, const struct macho_file *f, uint64_t at,
                               const uint8_t *p, size_t index)
{
    const uint32_t name = exti__macho_u32(p);
    const uint8_t type = p[4], sect = p[5];
    const uint16_t desc = exti__macho_u16(p + 6);
    const uint32_t ordinal = desc >> 8;
    const uint64_t strings = f->pieces[MACHO_STRINGS].s.n;

    if (name && name >= strings)
        exti__macho_broken(c, f, at, "",
                           "symbol %zu: its name at %u is outside the string table of %" PRIu64
                           " bytes",
                           index, name, strings);
    if (type & N_STAB)
        return;
    if ((type & N_TYPE) == N_SECT && (!sect || sect > f->section_count))
        exti__macho_broken(c, f, at, "", "symbol %zu: section %u of %zu", index, sect,
                           f->section_count);
    if ((type & N_TYPE) == N_UNDF && (type & N_EXT) && (f->flags & MH_TWOLEVEL) && ordinal &&
        ordinal <= MAX_LIBRARY_ORDINAL && ordinal > f->dylib_count)
        exti__macho_broken(c, f, at, "", "symbol %zu: library ordinal %u of %zu", index, ordinal,
                           f->dylib_count);
}

/* Whether symbol table entry `at` is the same in both files, and so are its faults. */
static bool is_settled(const struct macho_check *c, size_t at)
{
    const struct exti_span b = c->before.pieces[MACHO_SYMBOLS].s,
                           a = c->after.pieces[MACHO_SYMBOLS].s;

    return !c->judge.strict && c->after.dylib_count >= c->before.dylib_count && a.n == b.n &&
           c->before.pieces[MACHO_STRINGS].s.n == c->after.pieces[MACHO_STRINGS].s.n &&
           memcmp(a.p + at, b.p + at, NLIST_64_SIZE) == 0;
}

int exti__macho_rule_symbols(struct macho_check *c, const struct macho_file *f,
                             struct exti_error *err)
{
    const struct exti_span s = f->pieces[MACHO_SYMBOLS].s;

    (void)err;
    for (size_t i = 0; i < s.n / NLIST_64_SIZE && !c->judge.stop; i++)
        if (!is_settled(c, i * NLIST_64_SIZE))
            check_symbol_entry(c, f, s.base - f->file.base + i * NLIST_64_SIZE,
                               s.p + i * NLIST_64_SIZE, i);
    return 0;
}
