/* Rewriting one slice. */
#include "macho/edit/macho_rewrite.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/edit/macho_commands.h"
#include "macho/edit/macho_linkedit.h"
#include "macho/edit/macho_rebind.h"
#include "macho/edit/macho_shift.h"
#include "macho/edit/macho_sign.h"
#include "macho/read/macho_fat.h"
#include "macho/read/macho_signature.h"

/* A piece can grow to several times its old size, for example an import table in a wider format. */
#define GROWTH 4
#define SLACK ((size_t)1 << 20)

static void free_build(struct macho_build *b)
{
    for (size_t i = 0; i < MACHO_PIECES; i++)
        exti__buf_free(&b->pieces[i].data);
    exti__buf_free(&b->commands);
    exti__buf_free(&b->body);
    exti__free(b->ordinals);
}

/* dyld resolves a main program's libraries by the program's own path, and the kernel reads its
 * header.  Extensions are never main programs. */
static int refuse_programs(const struct macho_file *f, struct exti_error *err)
{
    if (f->filetype == MH_DYLIB || f->filetype == MH_BUNDLE)
        return 0;
    return exti__fail(err, EXTI_E_UNSUPPORTED, f->file.base,
                      "a main program (MH_EXECUTE), not a dylib or bundle");
}

/* Linkers and codesign name a signature after the file.  The copy of an unsigned file uses the
 * last part of its id. */
static const char *signature_identifier(const struct macho_build *b)
{
    const char *id = b->opts->id ? b->opts->id : b->f->id, *slash;

    if (b->signature.identifier && *b->signature.identifier)
        return b->signature.identifier;
    slash = id ? strrchr(id, '/') : NULL;
    id = slash ? slash + 1 : id;
    return id && *id ? id : "extension";
}

static bool differs_from_file(const struct macho_build *b)
{
    const struct macho_file *f = b->f;

    for (size_t i = 0; i < MACHO_PIECES; i++)
        if (b->pieces[i].replaced)
            return true;
    return b->header_flags != f->flags || b->command_count != f->command_count ||
           b->commands.n != f->sizeofcmds ||
           memcmp(b->commands.p, f->file.p + MACH_HEADER_64_SIZE, b->commands.n) != 0;
}

/* Appends the header, the commands, and zeros over the rest of longer old commands. */
static int put_header(const struct macho_build *b, struct exti_buf *out, struct exti_error *err)
{
    const struct macho_file *f = b->f;
    uint64_t end = MACH_HEADER_64_SIZE + b->commands.n;
    uint64_t size = b->shift ? b->shift : f->commands_end;
    uint8_t header[MACH_HEADER_64_SIZE];
    int rc;

    memcpy(header, f->file.p, sizeof header);
    exti__put_u32(header + 16, b->command_count, false);
    exti__put_u32(header + 20, (uint32_t)b->commands.n, false);
    exti__put_u32(header + 24, b->header_flags, false);
    rc = exti__buf_append(out, header, sizeof header, err);
    if (!rc)
        rc = exti__buf_append(out, b->commands.p, b->commands.n, err);
    if (!rc && end < size)
        rc = exti__buf_zeros(out, (size_t)(size - end), err);
    return rc;
}

static int sign_slice(const struct macho_build *b, uint64_t text_size,
                      const struct macho_rewritten *r, struct exti_buf *out, struct exti_error *err)
{
    const struct exti_span file = b->f->file;
    const struct exti_span parts[] = {
        exti__span(r->head.p, r->head.n),
        exti__span(file.p + r->head.n, (size_t)(r->tail_offset - r->head.n)),
        exti__span(r->tail.p, r->tail.n),
    };
    const struct macho_signable slice = {
        .parts = parts, .count = sizeof parts / sizeof *parts, .exec_seg_limit = text_size};

    return exti__macho_sign(&b->signature, b->identifier, &slice, out, err);
}

/* Fills head and tail.  A shift moves everything after the header to other pages; without one,
 * nothing between the commands and __LINKEDIT changes. */
static int lay_out_slice(struct macho_build *b, struct macho_rewritten *r, struct exti_error *err)
{
    const struct macho_file *f = b->f;
    struct exti_buf linkedit = exti__buf(r->tail.max), header = exti__buf(r->tail.max);
    uint64_t fileoff = 0, kept;
    int rc = exti__macho_linkedit(b, &linkedit, &fileoff, err);

    if (!rc)
        rc = put_header(b, &header, err);
    if (rc)
        goto out;
    kept = b->shift && header.n > f->room_end ? f->room_end : header.n;
    rc = exti__buf_append(&r->head, header.p, (size_t)kept, err);
    r->tail_offset = b->shift ? f->room_end : fileoff;
    if (!rc && b->shift) {
        rc = exti__buf_append(&r->tail, header.p + kept, header.n - (size_t)kept, err);
        if (!rc)
            rc = exti__macho_second_header(b, &r->tail, err);
        if (!rc)
            rc = exti__buf_append(&r->tail, b->body.p, b->body.n, err);
    }
    if (!rc)
        rc = exti__buf_append(&r->tail, linkedit.p, linkedit.n, err);
    if (!rc && b->resign)
        rc = sign_slice(b, f->text->filesize + b->shift, r, &r->tail, err);
out:
    exti__buf_free(&linkedit);
    exti__buf_free(&header);
    return rc;
}

static int rewrite_file(struct macho_build *b, struct macho_rewritten *r, struct exti_error *err)
{
    int rc = refuse_programs(b->f, err);

    if (!rc)
        rc = exti__macho_signature_read(b->f, &b->signature, err);
    if (rc)
        return rc;
    b->header_flags = b->f->flags;
    b->identifier = signature_identifier(b);
    rc = exti__macho_edit_commands(b, err);
    if (!rc)
        rc = exti__macho_rebind(b, err);
    r->changed = !rc && differs_from_file(b);
    if (rc || !r->changed)
        return rc;
    if (b->shift)
        rc = exti__macho_shift(b, err);
    return rc ? rc : lay_out_slice(b, r, err);
}

int exti__macho_rewrite(struct exti_span slice, const struct exti_rewrite_opts *opts,
                        const struct exti_span *bind, size_t bind_count, bool *found,
                        struct macho_rewritten *out, struct exti_error *err)
{
    size_t max = slice.n * GROWTH + SLACK;
    struct macho_rewritten r = {.head = exti__buf(max), .tail = exti__buf(max)};
    struct macho_build b = {.opts = opts, .bind = bind, .bind_count = bind_count, .found = found};
    struct macho_file f;
    int rc = exti__macho_open(slice, &f, err);

    if (rc)
        return rc;
    b.f = &f;
    b.commands = exti__buf(max);
    b.body = exti__buf(max);
    rc = rewrite_file(&b, &r, err);
    free_build(&b);
    exti__macho_close(&f);
    if (rc)
        exti__macho_rewritten_free(&r);
    else
        *out = r;
    return rc;
}

void exti__macho_rewritten_free(struct macho_rewritten *r)
{
    exti__buf_free(&r->head);
    exti__buf_free(&r->tail);
}

int exti__macho_bind_slices(const struct exti_request *req, uint32_t cputype, uint32_t cpusubtype,
                            struct exti_span *out, size_t *count, struct exti_error *err)
{
    *count = 0;
    for (size_t i = 0; i < req->bind_count; i++) {
        const struct macho_slice *slice;
        struct macho_fat fat;
        int rc = exti__macho_fat_open(req->bind[i], &fat, err);

        if (rc) {
            exti__error_file(err, req->opts->bind_file);
            return rc;
        }
        slice = exti__macho_slice_for(&fat, cputype, cpusubtype);
        if (slice)
            out[(*count)++] = slice->s;
        exti__macho_fat_close(&fat);
        if (!slice && i == 0)
            return 0;
    }
    return 0;
}
