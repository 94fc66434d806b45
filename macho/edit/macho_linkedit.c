/* The layout of __LINKEDIT.  Apple's codesign_allocate, install_name_tool and strip expect the
 * pieces in one order (cctools checkout.c) and refuse a file with gaps between them. */
#include "macho/edit/macho_linkedit.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "macho/edit/macho_sign.h"
#include "macho/read/macho_word.h"

enum {
    SIGNATURE_ALIGN = 16,
    /* Field offsets in segment_command_64. */
    VMADDR = 24,
    VMSIZE = 32,
    FILEOFF = 40,
    FILESIZE = 48
};

struct layout {
    struct macho_build *b;
    struct exti_buf *out;
    uint64_t start; /* __LINKEDIT's offset in the copy */
    struct exti_error *err;
};

/* The copy's first command `cmd`, for segment `segment` unless that is NULL; NULL if there is
 * none. */
static uint8_t *find_command(const struct macho_build *b, uint32_t cmd, const char *segment)
{
    uint8_t *p = b->commands.p;

    for (uint32_t i = 0; i < b->command_count; i++) {
        if (exti__macho_u32(p) == cmd &&
            (!segment || strncmp((const char *)p + 8, segment, 16) == 0))
            return p;
        p += exti__macho_u32(p + 4);
    }
    return NULL;
}

/* The copy's command that locates a piece; NULL if it was dropped. */
static uint8_t *piece_command(const struct macho_build *b, enum macho_piece_kind kind)
{
    const struct macho_piece *p = &b->f->pieces[kind];

    return p->present ? find_command(b, b->f->commands[p->command].cmd, NULL) : NULL;
}

static int put_fields(const struct layout *l, enum macho_piece_kind kind, uint64_t offset,
                      uint64_t size)
{
    const struct macho_piece *p = &l->b->f->pieces[kind];
    uint8_t *command = piece_command(l->b, kind);

    if (!command)
        return 0;
    if (offset > UINT32_MAX || size > UINT32_MAX)
        return exti__fail(l->err, EXTI_E_NOSPACE, l->b->f->linkedit->fileoff,
                          "__LINKEDIT: would exceed 4 GiB, the limit of load commands");
    exti__put_u32(command + p->off_at, (uint32_t)offset, false);
    exti__put_u32(command + p->size_at, (uint32_t)(size / p->unit), false);
    return 0;
}

static uint32_t old_offset(const struct macho_file *f, enum macho_piece_kind kind)
{
    const struct macho_piece *p = &f->pieces[kind];

    return exti__macho_u32(f->commands[p->command].s.p + p->off_at);
}

/* ---- if no piece changes its size, the layout stays ----------------------------------------- */

static uint64_t pieces_end(const struct macho_file *f)
{
    uint64_t end = f->linkedit->fileoff;

    for (int kind = 0; kind < MACHO_SIGNATURE; kind++) {
        const struct exti_span *s = &f->pieces[kind].s;

        if (s->n && s->base - f->file.base + s->n > end)
            end = s->base - f->file.base + s->n;
    }
    return end;
}

static bool keeps_sizes(const struct macho_build *b)
{
    const struct macho_file *f = b->f;
    const struct macho_piece *signature = &f->pieces[MACHO_SIGNATURE];

    for (int kind = 0; kind < MACHO_SIGNATURE; kind++)
        if (b->pieces[kind].replaced && b->pieces[kind].data.n != f->pieces[kind].s.n)
            return false;
    return !signature->s.n || signature->s.base - f->file.base >= pieces_end(f);
}

/* How many bytes of the old __LINKEDIT stay.  Padding before a signature stays.  An unsigned
 * file that gets a signature loses what follows its last piece. */
static uint64_t kept_size(const struct macho_build *b)
{
    const struct macho_file *f = b->f;
    const struct macho_piece *signature = &f->pieces[MACHO_SIGNATURE];

    if (signature->s.n)
        return signature->s.base - f->file.base - f->linkedit->fileoff;
    return b->resign ? pieces_end(f) - f->linkedit->fileoff : f->linkedit->filesize;
}

static int keep_piece(const struct layout *l, enum macho_piece_kind kind)
{
    const struct macho_build *b = l->b;
    const struct macho_file *f = b->f;
    const struct exti_span *s = &f->pieces[kind].s;
    uint64_t offset;

    if (!f->pieces[kind].present)
        return 0;
    offset = old_offset(f, kind);
    if (b->pieces[kind].replaced && s->n)
        memcpy(l->out->p + (offset - f->linkedit->fileoff), b->pieces[kind].data.p, s->n);
    if (offset >= f->linkedit->fileoff)
        offset += b->shift;
    return put_fields(l, kind, offset, s->n);
}

static int keep_layout(const struct layout *l)
{
    const struct macho_file *f = l->b->f;
    struct exti_span old;
    int rc =
        exti__span_sub(f->file, f->linkedit->fileoff, kept_size(l->b), "__LINKEDIT", &old, l->err);

    if (!rc)
        rc = exti__buf_append(l->out, old.p, old.n, l->err);
    for (int kind = 0; !rc && kind < MACHO_SIGNATURE; kind++)
        rc = keep_piece(l, (enum macho_piece_kind)kind);
    return rc;
}

/* ---- otherwise the pieces are laid out anew -------------------------------------------------- */

static int align_output(const struct layout *l, uint64_t to)
{
    const uint64_t over = (l->start + l->out->n) % to;

    return over ? exti__buf_zeros(l->out, (size_t)(to - over), l->err) : 0;
}

/* dyld requires pointer alignment for all pieces but these two.  After an odd number of indirect
 * symbols some linkers align the strings and others do not, so an existing gap stays. */
static uint64_t piece_alignment(const struct macho_file *f, enum macho_piece_kind kind)
{
    const struct exti_span *s = &f->pieces[kind].s, *before = &f->pieces[MACHO_INDIRECT_SYMBOLS].s;

    if (kind == MACHO_INDIRECT_SYMBOLS)
        return 4;
    if (kind != MACHO_STRINGS)
        return 8;
    return before->n && s->n && before->base + before->n != s->base && s->base % 8 == 0 ? 8 : 1;
}

/* Where an empty piece's offset points: linkedit_data_commands give its position in the order;
 * older commands give 0. */
static bool empty_has_offset(const struct macho_file *f, enum macho_piece_kind kind)
{
    if (!f->pieces[kind].s.n)
        return old_offset(f, kind) != 0;
    return f->commands[f->pieces[kind].command].s.n == LINKEDIT_DATA_COMMAND_SIZE;
}

static int place_piece(const struct layout *l, enum macho_piece_kind kind)
{
    const struct macho_piece *p = &l->b->f->pieces[kind];
    const struct exti_span s = exti__macho_piece(l->b, kind);
    uint64_t offset, size = s.n;
    int rc;

    if (!piece_command(l->b, kind))
        return 0;
    if (!s.n)
        return put_fields(l, kind, empty_has_offset(l->b->f, kind) ? l->start + l->out->n : 0, 0);
    rc = align_output(l, piece_alignment(l->b->f, kind));
    if (rc)
        return rc;
    offset = l->start + l->out->n;
    rc = exti__buf_append(l->out, s.p, s.n, l->err);
    /* Padding belongs to the piece; outside it, it would be a gap. */
    if (!rc && p->unit == 1 && kind != MACHO_STRINGS && l->b->pieces[kind].replaced) {
        rc = align_output(l, 8);
        size = l->start + l->out->n - offset;
    }
    return rc ? rc : put_fields(l, kind, offset, size);
}

static int place_pieces(const struct layout *l)
{
    int rc = 0;

    for (int kind = 0; !rc && kind < MACHO_SIGNATURE; kind++)
        rc = place_piece(l, (enum macho_piece_kind)kind);
    return rc;
}

/* ---- signature and segment ------------------------------------------------------------------- */

static int reserve_signature(const struct layout *l, uint64_t *size)
{
    const struct macho_build *b = l->b;
    uint8_t *command = find_command(b, LC_CODE_SIGNATURE, NULL);
    uint64_t limit;
    int rc;

    *size = 0;
    if (!b->resign || !command)
        return 0;
    rc = align_output(l, SIGNATURE_ALIGN);
    if (rc)
        return rc;
    limit = l->start + l->out->n;
    *size = exti__macho_signature_size(&b->signature, b->identifier, limit);
    if (limit > UINT32_MAX || *size > UINT32_MAX - limit)
        return exti__fail(l->err, EXTI_E_NOSPACE, b->f->linkedit->fileoff,
                          "LC_CODE_SIGNATURE: the signature would exceed 4 GiB");
    exti__put_u32(command + 8, (uint32_t)limit, false);
    exti__put_u32(command + 12, (uint32_t)*size, false);
    return 0;
}

/* Keeps a vmsize that is large enough, even if the linker did not round it to pages. */
static int put_segment(const struct layout *l, uint64_t filesize)
{
    const struct macho_file *f = l->b->f;
    const struct macho_segment *s = f->linkedit;
    uint8_t *command = find_command(l->b, LC_SEGMENT_64, s->name);
    uint64_t vmsize = s->vmsize, end;

    if (filesize > vmsize && !exti__align(filesize, f->page, &vmsize))
        vmsize = UINT64_MAX;
    if (!exti__add(s->vmaddr, vmsize, &end))
        end = UINT64_MAX;
    for (size_t i = 0; i < f->segment_count; i++)
        if (f->segments[i].vmaddr > s->vmaddr && f->segments[i].vmaddr < end)
            return exti__fail(l->err, EXTI_E_NOSPACE, f->commands[s->command].s.base + VMSIZE,
                              "__LINKEDIT: would need %" PRIu64
                              " bytes of memory, but %s follows at 0x%" PRIx64 "",
                              vmsize, f->segments[i].name, f->segments[i].vmaddr);
    exti__put_u64(command + VMADDR, s->vmaddr + l->b->shift, false);
    exti__put_u64(command + VMSIZE, vmsize, false);
    exti__put_u64(command + FILEOFF, l->start, false);
    exti__put_u64(command + FILESIZE, filesize, false);
    return 0;
}

int exti__macho_linkedit(struct macho_build *b, struct exti_buf *out, uint64_t *fileoff,
                         struct exti_error *err)
{
    const struct layout l = {
        .b = b, .out = out, .start = b->f->linkedit->fileoff + b->shift, .err = err};
    uint64_t signature;
    int rc = keeps_sizes(b) ? keep_layout(&l) : place_pieces(&l);

    if (!rc)
        rc = reserve_signature(&l, &signature);
    if (!rc)
        rc = put_segment(&l, out->n + signature);
    if (!rc)
        *fileoff = l.start;
    return rc;
}
