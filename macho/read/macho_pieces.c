/* The tables of __LINKEDIT: where the load commands locate each, and that nothing else is in the
 * segment. */
#include "macho/read/macho_pieces.h"

#include <inttypes.h>

#include "macho/read/macho_command.h"

struct piece_field {
    uint32_t cmd;
    enum macho_piece_kind kind;
    const char *name;
    uint32_t off_at, size_at, unit;
};

/* Field offsets in symtab_command, dysymtab_command, dyld_info_command, twolevel_hints_command
 * and linkedit_data_command. */
static const struct piece_field fields[] = {
    {LC_DYLD_INFO, MACHO_REBASE, "rebase opcodes", 8, 12, 1},
    {LC_DYLD_INFO, MACHO_BIND, "bind opcodes", 16, 20, 1},
    {LC_DYLD_INFO, MACHO_WEAK_BIND, "weak bind opcodes", 24, 28, 1},
    {LC_DYLD_INFO, MACHO_LAZY_BIND, "lazy bind opcodes", 32, 36, 1},
    {LC_DYLD_INFO, MACHO_EXPORT, "exports trie", 40, 44, 1},
    {LC_DYLD_CHAINED_FIXUPS, MACHO_CHAINED_FIXUPS, "chained fixups", 8, 12, 1},
    {LC_DYLD_EXPORTS_TRIE, MACHO_EXPORTS_TRIE, "exports trie", 8, 12, 1},
    {LC_DYSYMTAB, MACHO_LOCAL_RELOCS, "local relocations", 72, 76, 8},
    {LC_SEGMENT_SPLIT_INFO, MACHO_SPLIT_INFO, "split info", 8, 12, 1},
    {LC_FUNCTION_STARTS, MACHO_FUNCTION_STARTS, "function starts", 8, 12, 1},
    {LC_DATA_IN_CODE, MACHO_DATA_IN_CODE, "data in code", 8, 12, 1},
    {LC_DYLIB_CODE_SIGN_DRS, MACHO_CODE_SIGN_DRS, "signing requirements", 8, 12, 1},
    {LC_LINKER_OPTIMIZATION_HINT, MACHO_OPTIMIZATION_HINT, "optimization hints", 8, 12, 1},
    {LC_ATOM_INFO, MACHO_ATOM_INFO, "atom info", 8, 12, 1},
    {LC_FUNCTION_VARIANTS, MACHO_FUNCTION_VARIANTS, "function variants", 8, 12, 1},
    {LC_FUNCTION_VARIANT_FIXUPS, MACHO_FUNCTION_VARIANT_FIXUPS, "function variant fixups", 8, 12,
     1},
    {LC_SYMTAB, MACHO_SYMBOLS, "symbol table", 8, 12, NLIST_64_SIZE},
    {LC_TWOLEVEL_HINTS, MACHO_TWOLEVEL_HINTS, "two-level hints", 8, 12, 4},
    {LC_DYSYMTAB, MACHO_EXTERNAL_RELOCS, "external relocations", 64, 68, 8},
    {LC_DYSYMTAB, MACHO_INDIRECT_SYMBOLS, "indirect symbol table", 56, 60, 4},
    {LC_DYSYMTAB, MACHO_TOC, "table of contents", 32, 36, 8},
    {LC_DYSYMTAB, MACHO_MODULES, "module table", 40, 44, 56},
    {LC_DYSYMTAB, MACHO_EXTERNAL_REFS, "external reference table", 48, 52, 4},
    {LC_SYMTAB, MACHO_STRINGS, "string table", 16, 20, 1},
    {LC_CODE_SIGNATURE, MACHO_SIGNATURE, "code signature", 8, 12, 1},
};

const char *exti__macho_piece_name(enum macho_piece_kind kind)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].kind == kind)
            return fields[i].name;
    return "";
}

int exti__macho_read_pieces(struct macho_file *f, size_t i, struct exti_error *err)
{
    uint32_t cmd = f->commands[i].cmd;

    if (cmd == LC_DYLD_INFO_ONLY)
        cmd = LC_DYLD_INFO;
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
        const struct piece_field *d = &fields[k];
        struct macho_piece *p = &f->pieces[d->kind];

        if (d->cmd != cmd)
            continue;
        if (p->present)
            return exti__macho_fail(f, i, 0, EXTI_E_FORMAT, err, "a second %s, after %s", d->name,
                                    exti__macho_name(f, p->command).text);
        *p = (struct macho_piece){.present = true,
                                  .command = i,
                                  .off_at = d->off_at,
                                  .size_at = d->size_at,
                                  .unit = d->unit,
                                  .s = {.p = f->file.p, .base = f->file.base}};
    }
    return 0;
}

/* ---- all pieces, once the segments are known ------------------------------------------------- */

static int fail_piece(const struct macho_file *f, enum macho_piece_kind kind, bool size, int code,
                      struct exti_error *err, const char *what, uint64_t value)
{
    const struct macho_piece *p = &f->pieces[kind];

    return exti__macho_fail(f, p->command, size ? p->size_at : p->off_at, code, err,
                            "%s: %s 0x%" PRIx64, exti__macho_piece_name(kind), what, value);
}

static int locate_piece(struct macho_file *f, enum macho_piece_kind kind, struct exti_error *err)
{
    const struct macho_segment *l = f->linkedit;
    struct macho_piece *p = &f->pieces[kind];
    uint32_t offset, count;
    uint64_t size, into;

    if (!p->present)
        return 0;
    offset = exti__macho_field(f, p->command, p->off_at);
    count = exti__macho_field(f, p->command, p->size_at);
    size = (uint64_t)count * p->unit;
    if (!size)
        return 0; /* an empty piece may have any offset */
    if (offset < l->fileoff || offset - l->fileoff > l->filesize)
        return fail_piece(f, kind, false, EXTI_E_FORMAT, err, "is outside of __LINKEDIT, at",
                          offset);
    into = offset - l->fileoff;
    if (size > l->filesize - into)
        return fail_piece(f, kind, true, EXTI_E_FORMAT, err,
                          "ends outside of __LINKEDIT, whose end is", l->fileoff + l->filesize);
    return exti__span_sub(f->file, offset, size, exti__macho_piece_name(kind), &p->s, err);
}

/* Bytes between pieces must be zero padding, because a rewrite would lose anything else. */
static int check_padding(const struct macho_file *f, uint64_t from, uint64_t to,
                         struct exti_error *err)
{
    struct exti_span gap;
    int rc = exti__span_sub(f->file, from, to - from, "__LINKEDIT", &gap, err);

    for (size_t i = 0; !rc && i < gap.n; i++)
        if (gap.p[i])
            return exti__fail(err, EXTI_E_UNSUPPORTED, gap.base + i,
                              "__LINKEDIT: holds bytes that no load command describes");
    return rc;
}

static int check_pieces_apart(const struct macho_file *f, struct exti_error *err)
{
    enum macho_piece_kind order[MACHO_PIECES];
    uint64_t at = f->linkedit->fileoff;
    size_t n = 0;
    int rc = 0;

    for (int kind = 0; kind < MACHO_PIECES; kind++) {
        size_t i = n;

        if (!f->pieces[kind].s.n)
            continue;
        for (; i > 0 && f->pieces[order[i - 1]].s.base > f->pieces[kind].s.base; i--)
            order[i] = order[i - 1];
        order[i] = (enum macho_piece_kind)kind;
        n++;
    }
    for (size_t i = 0; !rc && i < n; i++) {
        const struct exti_span *s = &f->pieces[order[i]].s;
        uint64_t start = s->base - f->file.base;

        if (start < at)
            return exti__macho_fail(f, f->pieces[order[i]].command, f->pieces[order[i]].off_at,
                                    EXTI_E_FORMAT, err, "%s: shares bytes with the %s",
                                    exti__macho_piece_name(order[i]),
                                    exti__macho_piece_name(order[i - 1]));
        rc = check_padding(f, at, start, err);
        at = start + s->n;
    }
    return rc ? rc : check_padding(f, at, f->linkedit->fileoff + f->linkedit->filesize, err);
}

/* LC_DYSYMTAB divides the symbol table into three adjacent parts. */
static int check_symbol_parts(const struct macho_file *f, struct exti_error *err)
{
    static const char *const names[] = {"ilocalsym", "iextdefsym", "iundefsym"};
    const struct macho_piece *symbols = &f->pieces[MACHO_SYMBOLS];
    const struct macho_piece *parts = &f->pieces[MACHO_INDIRECT_SYMBOLS];
    uint64_t at = 0, count = symbols->s.n / NLIST_64_SIZE;

    if (!parts->present)
        return 0;
    if (!symbols->present)
        return exti__macho_fail(f, parts->command, 0, EXTI_E_FORMAT, err,
                                "there is no LC_SYMTAB for it to describe");
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t first = exti__macho_field(f, parts->command, 8 + 8 * i);
        uint32_t n = exti__macho_field(f, parts->command, 12 + 8 * i);

        if (n && first != at)
            return exti__macho_fail(f, parts->command, 8 + 8 * i, EXTI_E_FORMAT, err,
                                    "%s is %" PRIu32 ", not %" PRIu64, names[i], first, at);
        at += n;
    }
    if (at != count)
        return exti__macho_fail(f, parts->command, 28, EXTI_E_FORMAT, err,
                                "counts %" PRIu64 " symbols, but LC_SYMTAB has %" PRIu64, at,
                                count);
    return 0;
}

/* dyld's validStructureLinkedit: a file has one kind of fixups and one trie. */
static int check_combination(const struct macho_file *f, struct exti_error *err)
{
    const struct macho_piece *info = &f->pieces[MACHO_BIND],
                             *chained = &f->pieces[MACHO_CHAINED_FIXUPS],
                             *trie = &f->pieces[MACHO_EXPORTS_TRIE];
    bool modern = info->present || chained->present;

    if (info->present && chained->present)
        return exti__macho_fail(f, chained->command, 0, EXTI_E_FORMAT, err,
                                "in addition to %s; a file may have only one of the two",
                                exti__macho_name(f, info->command).text);
    if (f->pieces[MACHO_EXPORT].s.n && trie->s.n)
        return exti__macho_fail(f, trie->command, 0, EXTI_E_FORMAT, err,
                                "in addition to the exports trie of %s",
                                exti__macho_name(f, info->command).text);
    if (modern && f->pieces[MACHO_LOCAL_RELOCS].s.n)
        return fail_piece(f, MACHO_LOCAL_RELOCS, true, EXTI_E_FORMAT, err,
                          "dyld ignores them in a file with newer fixups; their size is",
                          f->pieces[MACHO_LOCAL_RELOCS].s.n);
    if (modern && f->pieces[MACHO_EXTERNAL_RELOCS].s.n)
        return fail_piece(f, MACHO_EXTERNAL_RELOCS, true, EXTI_E_FORMAT, err,
                          "dyld ignores them in a file with newer fixups; their size is",
                          f->pieces[MACHO_EXTERNAL_RELOCS].s.n);
    return 0;
}

int exti__macho_check_pieces(struct macho_file *f, struct exti_error *err)
{
    int rc = 0;

    for (int kind = 0; !rc && kind < MACHO_PIECES; kind++)
        rc = locate_piece(f, (enum macho_piece_kind)kind, err);
    if (!rc)
        rc = check_combination(f, err);
    if (!rc)
        rc = check_pieces_apart(f, err);
    return rc ? rc : check_symbol_parts(f, err);
}
