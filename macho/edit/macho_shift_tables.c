/* Shifting the tables of __LINKEDIT that hold addresses: exports, symbols, function starts, data
 * in code. */
#include "macho/edit/macho_shift_tables.h"

#include <inttypes.h>

#include "base/checked.h"
#include "base/error.h"
#include "macho/edit/macho_put_leb.h"
#include "macho/edit/macho_shift_place.h"
#include "macho/edit/macho_trie_build.h"
#include "macho/read/macho_leb.h"
#include "macho/read/macho_trie.h"

/* ---- exports trie ---------------------------------------------------------------------------- */

struct exports {
    uint64_t shift, at; /* at: the trie's offset in the file */
};

static int move_export(void *user, struct macho_export *e, struct exti_error *err)
{
    const struct exports *x = user;
    const uint64_t kind = e->flags & EXPORT_SYMBOL_FLAGS_KIND_MASK;
    const uint64_t known = EXPORT_SYMBOL_FLAGS_KIND_MASK | EXPORT_SYMBOL_FLAGS_WEAK_DEFINITION |
                           EXPORT_SYMBOL_FLAGS_REEXPORT | EXPORT_SYMBOL_FLAGS_STUB_AND_RESOLVER;

    if (kind == EXPORT_SYMBOL_FLAGS_KIND_MASK || e->flags & ~known)
        return exti__fail(err, EXTI_E_UNSUPPORTED, x->at,
                          "export %s has unknown flags 0x%" PRIx64 "", e->name, e->flags);
    if (e->flags & EXPORT_SYMBOL_FLAGS_REEXPORT || kind == EXPORT_SYMBOL_FLAGS_KIND_ABSOLUTE)
        return 0;
    if (!exti__add(e->address, x->shift, &e->address) ||
        (e->flags & EXPORT_SYMBOL_FLAGS_STUB_AND_RESOLVER &&
         !exti__add(e->other, x->shift, &e->other)))
        return exti__fail(err, EXTI_E_FORMAT, x->at, "export %s: address overflows", e->name);
    return 0;
}

static int move_trie(struct macho_build *b, enum macho_piece_kind kind, struct exti_error *err)
{
    const struct exti_span trie = exti__macho_piece(b, kind);
    struct exports x = {.shift = b->shift, .at = trie.base};
    /* Each number can grow to ten bytes. */
    struct exti_buf out = exti__buf(trie.n * 10 + 64);
    int rc = trie.n ? exti__macho_trie_map(trie, move_export, &x, &out, err) : 0;

    if (rc)
        exti__buf_free(&out);
    else if (trie.n)
        *exti__macho_piece_new(b, kind, out.max) = out;
    return rc;
}

int exti__macho_shift_exports(struct macho_build *b, struct exti_error *err)
{
    int rc = move_trie(b, MACHO_EXPORT, err);

    return rc ? rc : move_trie(b, MACHO_EXPORTS_TRIE, err);
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* Whether the value of a debugging symbol is an address (mach-o/stab.h).  N_OSO and N_AST hold a
 * time, N_LSYM and N_PSYM a stack offset, N_BINCL and N_EXCL a checksum.  Address 0 means none. 
 * *begin is the value of the last N_BNSYM. */
static bool stab_has_address(uint8_t type, uint8_t sect, uint64_t value, uint64_t *begin)
{
    switch (type) {
    case 0x2e: /* N_BNSYM */
        *begin = value;
        return sect != 0;
    case 0x4e: /* N_ENSYM: the function's address; ld64 before Xcode 15 wrote its size */
        return sect && value == *begin;
    case 0x20: /* N_GSYM: lld writes its address */
    case 0x24: /* N_FUN: with section 0, the size of the preceding function */
    case 0x26: /* N_STSYM */
    case 0x28: /* N_LCSYM */
    case 0x44: /* N_SLINE */
    case 0x64: /* N_SO */
    case 0x84: /* N_SOL */
    case 0xa4: /* N_ENTRY */
    case 0xc0: /* N_LBRAC */
    case 0xe0: /* N_RBRAC */
    case 0xe8: /* N_ECOML */
        return sect != 0;
    default:
        return false;
    }
}

int exti__macho_shift_symbols(struct macho_build *b, struct exti_error *err)
{
    const uint64_t base = b->f->pieces[MACHO_SYMBOLS].s.base;
    struct exti_buf *buf;
    struct exti_cur c;
    uint64_t begin = 0;
    int rc;

    if (!exti__macho_piece(b, MACHO_SYMBOLS).n)
        return 0;
    rc = exti__macho_shift_piece(b, MACHO_SYMBOLS, &buf, err);
    if (rc)
        return rc;
    c = exti__cur(exti__span(buf->p, buf->n), false);
    for (size_t at = 0; at + NLIST_64_SIZE <= buf->n; at += NLIST_64_SIZE) {
        uint8_t type, sect;
        uint64_t value;
        bool moves;

        exti__cur_skip(&c, 4);
        type = exti__cur_u8(&c);
        sect = exti__cur_u8(&c);
        exti__cur_skip(&c, 2);
        value = exti__cur_u64(&c);
        moves = type & N_STAB ? stab_has_address(type, sect, value, &begin) && value
                              : (type & N_TYPE) == N_SECT;
        if (!moves)
            continue;
        if (!exti__add(value, b->shift, &value))
            return exti__fail(err, EXTI_E_FORMAT, base + at, "symbol %zu: address overflows",
                              at / NLIST_64_SIZE);
        exti__put_u64(buf->p + at + 8, value, false);
    }
    return 0;
}

/* ---- function starts, data in code ----------------------------------------------------------- */

/* The first number counts from the image's start, each later one from its predecessor. */
int exti__macho_shift_function_starts(struct macho_build *b, struct exti_error *err)
{
    const struct exti_span s = exti__macho_piece(b, MACHO_FUNCTION_STARTS);
    struct exti_buf out = exti__buf(s.n + 16);
    struct exti_cur c = exti__cur(s, false);
    uint64_t first;
    int rc;

    if (!s.n || !s.p[0])
        return 0;
    first = exti__macho_uleb(&c);
    rc = exti__cur_end(&c, "function starts", err);
    if (!rc && !exti__add(first, b->shift, &first))
        rc = exti__fail(err, EXTI_E_FORMAT, s.base, "function starts: first address overflows");
    if (!rc)
        rc = exti__macho_put_uleb(&out, first, err);
    if (!rc)
        rc = exti__buf_append(&out, s.p + c.at, s.n - c.at, err);
    /* The number's growth uses up existing padding first. */
    while (!rc && out.n > s.n && !out.p[out.n - 1] && !out.p[out.n - 2])
        out.n--;
    if (!rc)
        rc = exti__buf_align(&out, 8, err);
    if (rc)
        exti__buf_free(&out);
    else
        *exti__macho_piece_new(b, MACHO_FUNCTION_STARTS, out.max) = out;
    return rc;
}

int exti__macho_shift_data_in_code(struct macho_build *b, struct exti_error *err)
{
    const uint64_t base = b->f->pieces[MACHO_DATA_IN_CODE].s.base;
    struct exti_buf *buf;
    int rc;

    if (!exti__macho_piece(b, MACHO_DATA_IN_CODE).n)
        return 0;
    rc = exti__macho_shift_piece(b, MACHO_DATA_IN_CODE, &buf, err);
    for (size_t at = 0; !rc && at + 8 <= buf->n; at += 8)
        rc = exti__macho_shift_u32(buf->p + at, b->shift, base + at, "data in code", err);
    return rc;
}
