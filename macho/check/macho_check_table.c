/* The rest of __LINKEDIT: symbols, function starts, data in code, and pieces that stay as they
 * are. */
#include "macho/check/macho_check_table.h"

#include <inttypes.h>
#include <string.h>

#include "macho/check/macho_check_follow.h"
#include "macho/check/macho_check_report.h"
#include "macho/read/macho_pieces.h"
#include "macho/read/macho_word.h"

#define STAB_BNSYM 0x2e
#define STAB_ENSYM 0x4e

/* ---- symbols --------------------------------------------------------------------------------- */

static const char *symbol_name(const struct macho_file *f, const uint8_t *p)
{
    const struct exti_span names = f->pieces[MACHO_STRINGS].s;
    const uint32_t at = exti__macho_u32(p);

    return at < names.n && memchr(names.p + at, 0, names.n - at) ? (const char *)names.p + at : "";
}

/* Whether the value of a debugging symbol is an address (mach-o/stab.h).  UNSURE: some linkers
 * write a size. */
enum { NOT_AN_ADDRESS, AN_ADDRESS, UNSURE };

static int stab_kind(uint8_t type)
{
    switch (type) {
    case 0x20: /* N_GSYM */
    case 0x24: /* N_FUN */
    case 0x26: /* N_STSYM */
    case 0x28: /* N_LCSYM */
    case STAB_BNSYM:
    case 0x44: /* N_SLINE */
    case 0x84: /* N_SOL */
    case 0xa4: /* N_ENTRY */
    case 0xc0: /* N_LBRAC */
    case 0xe0: /* N_RBRAC */
    case 0xe8: /* N_ECOML */
        return AN_ADDRESS;
    case STAB_ENSYM:
    case 0x64: /* N_SO */
        return UNSURE;
    default:
        return NOT_AN_ADDRESS;
    }
}

static bool value_follows(const struct macho_check *c, const uint8_t *b, const uint8_t *a)
{
    const uint64_t was = exti__macho_u64(b + 8), now = exti__macho_u64(a + 8);
    int kind = (b[4] & N_TYPE) == N_SECT ? AN_ADDRESS : NOT_AN_ADDRESS;

    if (b[4] & N_STAB)
        kind = b[5] && was ? stab_kind(b[4]) : NOT_AN_ADDRESS;
    return (kind != AN_ADDRESS && now == was) || (kind != NOT_AN_ADDRESS && now == was + c->shift);
}

static int32_t library_of(uint16_t desc)
{
    const int32_t ordinal = desc >> 8;

    return ordinal == DYNAMIC_LOOKUP_ORDINAL ? BIND_SPECIAL_DYLIB_FLAT_LOOKUP
           : ordinal == EXECUTABLE_ORDINAL   ? BIND_SPECIAL_DYLIB_MAIN_EXECUTABLE
                                             : ordinal;
}

static bool names_library(const struct macho_file *f, uint8_t type)
{
    return f->flags & MH_TWOLEVEL && !(type & N_STAB) && (type & N_TYPE) == N_UNDF && type & N_EXT;
}

static int compare_symbol(struct macho_check *c, size_t i, const uint8_t *b, const uint8_t *a,
                          struct exti_error *err)
{
    const char *name = symbol_name(&c->before, b), *is = symbol_name(&c->after, a);
    const uint16_t was = exti__macho_u16(b + 6), now = exti__macho_u16(a + 6);
    const uint64_t at =
        c->after.pieces[MACHO_SYMBOLS].s.base - c->after.file.base + i * NLIST_64_SIZE;
    bool ok = true;
    int rc = 0;

    if (is != name && strcmp(is, name) != 0)
        exti__macho_finding(c, at, "symbol %zu: %s, not %s", i, is, name);
    else if (a[4] != b[4] || a[5] != b[5] || !value_follows(c, b, a))
        exti__macho_finding(c, at,
                            "symbol %s: type 0x%x, section %u, value 0x%" PRIx64
                            ", not type 0x%x, section %u, value 0x%" PRIx64,
                            name, a[4], a[5], exti__macho_u64(a + 8), b[4], b[5],
                            exti__macho_u64(b + 8) + c->shift);
    else if (!names_library(&c->before, b[4]))
        ok = now == was;
    else if ((now & 0xff) != (was & 0xff))
        ok = false;
    else if (now != was || !c->same_dylibs || was >> 8 >= DYNAMIC_LOOKUP_ORDINAL)
        rc = exti__macho_follows(c, name, library_of(was), library_of(now), &ok, err);
    /* The byte cannot hold a larger ordinal, and dyld does not read it. */
    if (!ok && now == was && c->after.dylib_count > MAX_LIBRARY_ORDINAL)
        ok = true;
    if (!rc && !ok)
        exti__macho_finding(c, at + 6, "symbol %s: n_desc 0x%x; in the original, 0x%x", name, now,
                            was);
    return rc;
}

int exti__macho_step_symbols(struct macho_check *c, struct exti_error *err)
{
    const struct exti_span b = c->before.pieces[MACHO_SYMBOLS].s,
                           a = c->after.pieces[MACHO_SYMBOLS].s;
    const bool same = !c->shift && exti__macho_same_piece(c, MACHO_STRINGS);
    int rc = 0;

    if (a.n != b.n) {
        exti__macho_finding(c, EXTI_NO_OFFSET, "%zu symbols, not %zu", a.n / NLIST_64_SIZE,
                            b.n / NLIST_64_SIZE);
        return 0;
    }
    for (size_t i = 0; !rc && i < b.n / NLIST_64_SIZE && !c->judge.stop; i++) {
        const uint8_t *was = b.p + i * NLIST_64_SIZE, *now = a.p + i * NLIST_64_SIZE;

        if (!same || memcmp(was, now, NLIST_64_SIZE) != 0 || names_library(&c->before, was[4]))
            rc = compare_symbol(c, i, was, now, err);
    }
    return rc;
}

/* ---- function starts ------------------------------------------------------------------------- */

/* Advances to the next function's address; false at the end. */
static bool next_start(struct exti_span s, size_t *at, uint64_t *address)
{
    uint64_t delta = 0;

    for (unsigned shift = 0; *at < s.n && shift < 64; shift += 7) {
        const uint8_t byte = s.p[(*at)++];

        delta |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        *address += delta;
        return delta != 0;
    }
    return false;
}

int exti__macho_step_starts(struct macho_check *c, struct exti_error *err)
{
    const struct exti_span b = c->before.pieces[MACHO_FUNCTION_STARTS].s,
                           a = c->after.pieces[MACHO_FUNCTION_STARTS].s;
    uint64_t was = 0, now = 0;
    size_t i = 0, j = 0;
    bool more = true;

    (void)err;
    if (!c->after.pieces[MACHO_FUNCTION_STARTS].present ||
        (!c->shift && exti__macho_same_piece(c, MACHO_FUNCTION_STARTS)))
        return 0;
    while (more && !c->judge.stop) {
        more = next_start(b, &i, &was);
        if (next_start(a, &j, &now) == more && (!more || now == was + c->shift))
            continue;
        exti__macho_finding(c, a.base - c->after.file.base,
                            "function starts: 0x%" PRIx64 " where the original has 0x%" PRIx64, now,
                            was + c->shift);
        return 0;
    }
    return 0;
}

/* ---- data in code ---------------------------------------------------------------------------- */

int exti__macho_step_data_in_code(struct macho_check *c, struct exti_error *err)
{
    const struct exti_span b = c->before.pieces[MACHO_DATA_IN_CODE].s,
                           a = c->after.pieces[MACHO_DATA_IN_CODE].s;

    (void)err;
    if (!c->after.pieces[MACHO_DATA_IN_CODE].present && !b.n)
        return 0;
    if (a.n != b.n) {
        exti__macho_finding(c, EXTI_NO_OFFSET, "data in code: %zu bytes, not %zu", a.n, b.n);
        return 0;
    }
    for (size_t at = 0; at + 8 <= b.n; at += 8)
        if (exti__macho_u32(a.p + at) != exti__macho_u32(b.p + at) + c->shift ||
            exti__macho_u32(a.p + at + 4) != exti__macho_u32(b.p + at + 4)) {
            exti__macho_finding(c, a.base - c->after.file.base + at,
                                "data in code: an entry for 0x%x, not 0x%" PRIx64,
                                exti__macho_u32(a.p + at), exti__macho_u32(b.p + at) + c->shift);
            return 0;
        }
    return 0;
}

/* ---- other pieces ---------------------------------------------------------------------------- */

/* Pieces that other steps decode. */
static bool is_decoded(enum macho_piece_kind kind)
{
    switch (kind) {
    case MACHO_REBASE:
    case MACHO_BIND:
    case MACHO_WEAK_BIND:
    case MACHO_LAZY_BIND:
    case MACHO_EXPORT:
    case MACHO_CHAINED_FIXUPS:
    case MACHO_EXPORTS_TRIE:
    case MACHO_FUNCTION_STARTS:
    case MACHO_DATA_IN_CODE:
    case MACHO_SYMBOLS:
    case MACHO_STRINGS:
    case MACHO_SIGNATURE:
        return true;
    default:
        return false;
    }
}

/* Pieces that a copy may drop, with their commands, to make room. */
static bool is_optional(enum macho_piece_kind kind)
{
    return kind == MACHO_SPLIT_INFO || kind == MACHO_CODE_SIGN_DRS;
}

int exti__macho_step_pieces(struct macho_check *c, struct exti_error *err)
{
    (void)err;
    for (int i = 0; i < MACHO_PIECES; i++) {
        const enum macho_piece_kind kind = (enum macho_piece_kind)i;
        const struct macho_piece *now = &c->after.pieces[i];

        if (is_decoded(kind) || exti__macho_same_piece(c, kind) ||
            (is_optional(kind) && !now->present))
            continue;
        exti__macho_finding(c, now->s.n ? now->s.base - c->after.file.base : EXTI_NO_OFFSET,
                            "%s: differs from the original's", exti__macho_piece_name(kind));
    }
    return 0;
}
