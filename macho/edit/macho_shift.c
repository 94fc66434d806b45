/* The page shift: a copy whose load commands do not fit before the first section gets whole pages
 * for them.
 *
 *     old file                      copy
 *     0        header, commands     0             header, new commands
 *                                   P             second header, in the old one's place
 *     room_end body                 P + room_end  body
 *              __LINKEDIT                         new __LINKEDIT
 *
 * Everything from the old header on moves by the same P in the file and in memory, so distances
 * within it stay valid: code, stubs, relative pointers of Objective-C and Swift, __eh_frame.  Two
 * kinds of numbers change: addresses (rebase targets, symbols), and offsets from the image's
 * start, which is still the file's start (exports, unwind info, __init_offsets, function starts,
 * data in code).  Code that takes the address of its own Mach-O header gets the second header. */
#include "macho/edit/macho_shift.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "macho/edit/macho_shift_check.h"
#include "macho/edit/macho_shift_fixups.h"
#include "macho/edit/macho_shift_place.h"
#include "macho/edit/macho_shift_tables.h"
#include "macho/edit/macho_unwind.h"
#include "macho/read/macho_withheld.h"
#include "macho/read/macho_word.h"

#define ROUTINES_INIT_ADDRESS 8u
#define ENCRYPTION_CRYPTOFF 8u

/* Field offsets in segment_command_64 and section_64. */
#define SEGMENT_NAME 8u
#define SEGMENT_VMADDR 24u
#define SEGMENT_NSECTS 64u
#define SECTION_ADDR 32u
#define SECTION_OFFSET 48u

/* ---- load commands --------------------------------------------------------------------------- */

/* __TEXT grows, and the other segments move.  The file offset of an empty segment may be 0 and
 * then stays. */
static int move_segment(const struct macho_build *b, uint8_t *p, uint32_t size,
                        struct exti_error *err)
{
    const bool is_text = !strncmp((const char *)p + SEGMENT_NAME, "__TEXT", 16);
    uint8_t *vmaddr = p + SEGMENT_VMADDR, *vmsize = vmaddr + 8, *fileoff = vmaddr + 16,
            *filesize = vmaddr + 24;
    const uint32_t sections = exti__macho_u32(p + SEGMENT_NSECTS);
    int rc = exti__macho_shift_u64(is_text ? vmsize : vmaddr, b->shift, "segment's address", err);

    if (!rc && (is_text || exti__macho_u64(filesize) || exti__macho_u64(fileoff)))
        rc = exti__macho_shift_u64(is_text ? filesize : fileoff, b->shift, "segment's offset", err);
    for (uint32_t i = 0; !rc && i < sections; i++) {
        const uint64_t at = SEGMENT_COMMAND_64_SIZE + (uint64_t)i * SECTION_64_SIZE;
        uint8_t *section = p + at;

        if (at + SECTION_64_SIZE > size)
            return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                              "LC_SEGMENT_64: %" PRIu32 " sections need more than %" PRIu32
                              " bytes",
                              sections, size);
        rc = exti__macho_shift_u64(section + SECTION_ADDR, b->shift, "section's address", err);
        if (!rc && exti__macho_u32(section + SECTION_OFFSET)) /* 0: it has no bytes */
            rc = exti__macho_shift_u32(section + SECTION_OFFSET, b->shift, EXTI_NO_OFFSET,
                                       "section's offset", err);
    }
    return rc;
}

/* Minimum size of a command that move_command edits; 0 for others. */
static uint32_t least_size(uint32_t cmd)
{
    switch (cmd) {
    case LC_SEGMENT_64:
        return SEGMENT_COMMAND_64_SIZE;
    case LC_ROUTINES_64:
    case EXTI_LC_ROUTINES_64:
        return 72;
    case LC_ENCRYPTION_INFO:
    case LC_ENCRYPTION_INFO_64:
        return 20;
    default:
        return 0;
    }
}

static int move_command(const struct macho_build *b, uint8_t *p, uint32_t cmd, uint32_t size,
                        struct exti_error *err)
{
    switch (cmd) {
    case LC_SEGMENT_64:
        return move_segment(b, p, size, err);
    case LC_ROUTINES_64:
    case EXTI_LC_ROUTINES_64:
        if (!exti__macho_u64(p + ROUTINES_INIT_ADDRESS))
            return 0;
        return exti__macho_shift_u64(p + ROUTINES_INIT_ADDRESS, b->shift,
                                     "LC_ROUTINES_64: init_address", err);
    case LC_ENCRYPTION_INFO:
    case LC_ENCRYPTION_INFO_64:
        if (!exti__macho_u32(p + ENCRYPTION_CRYPTOFF))
            return 0;
        return exti__macho_shift_u32(p + ENCRYPTION_CRYPTOFF, b->shift, EXTI_NO_OFFSET,
                                     "LC_ENCRYPTION_INFO: cryptoff", err);
    default:
        return 0;
    }
}

/* Only the shared cache builder reads LC_SEGMENT_SPLIT_INFO, and copies never go into a cache. */
static void drop_split_info(struct macho_build *b, size_t at, uint32_t size)
{
    memmove(b->commands.p + at, b->commands.p + at + size, b->commands.n - at - size);
    b->commands.n -= size;
    b->command_count--;
    exti__macho_piece_new(b, MACHO_SPLIT_INFO, 0);
}

static int move_commands(struct macho_build *b, struct exti_error *err)
{
    size_t at = 0;
    int rc = 0;

    for (uint32_t i = 0; !rc && at < b->commands.n;) {
        struct exti_cur c = exti__cur(exti__span(b->commands.p + at, b->commands.n - at), false);
        const uint32_t cmd = exti__cur_u32(&c);
        const uint32_t size = exti__cur_u32(&c);

        if (c.failed || size < 8 || size > b->commands.n - at || size < least_size(cmd))
            return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                              "load command %" PRIu32 " of the copy has a size of %" PRIu32, i,
                              size);
        if (cmd == LC_SEGMENT_SPLIT_INFO) {
            drop_split_info(b, at, size);
            continue;
        }
        rc = move_command(b, b->commands.p + at, cmd, size, err);
        at += size;
        i++;
    }
    return rc;
}

/* ---- sections -------------------------------------------------------------------------------- */

/* Shifts offsets from the image's start that sections hold. */
static int move_section(struct macho_build *b, const struct macho_section *s,
                        struct exti_error *err)
{
    const uint64_t base = b->f->file.base + s->offset;
    uint8_t *p = NULL;
    int rc = 0;

    if (!s->size)
        return 0;
    if (exti__macho_section_type(s->flags) == S_INIT_FUNC_OFFSETS) {
        rc = exti__macho_shift_body(b, s->offset, s->size, "__init_offsets", &p, err);
        for (uint64_t at = 0; !rc && at + 4 <= s->size; at += 4)
            rc = exti__macho_shift_u32(p + at, b->shift, base + at, "__init_offsets", err);
    } else if (!strcmp(s->segment, "__TEXT") && !strcmp(s->name, "__unwind_info")) {
        rc = exti__macho_shift_body(b, s->offset, s->size, "__unwind_info", &p, err);
        if (!rc)
            rc = exti__macho_unwind_shift(p, (size_t)s->size, base, b->shift, err);
    }
    return rc;
}

int exti__macho_shift(struct macho_build *b, struct exti_error *err)
{
    const uint64_t start = b->f->room_end;
    struct exti_span body;
    int rc = exti__macho_shift_check(b, err);

    if (!rc && b->f->linkedit->fileoff < start)
        rc = exti__fail(err, EXTI_E_FORMAT, b->f->file.base + start,
                        "__LINKEDIT starts before the space for load commands ends");
    if (!rc)
        rc = exti__span_sub(b->f->file, start, b->f->linkedit->fileoff - start, "segments", &body,
                            err);
    if (rc)
        return rc;
    b->body = exti__buf(body.n);
    rc = exti__buf_append(&b->body, body.p, body.n, err);
    if (!rc)
        rc = exti__macho_shift_fixups(b, err);
    for (size_t i = 0; !rc && i < b->f->section_count; i++)
        rc = move_section(b, &b->f->sections[i], err);
    if (!rc)
        rc = exti__macho_shift_exports(b, err);
    if (!rc)
        rc = exti__macho_shift_symbols(b, err);
    if (!rc)
        rc = exti__macho_shift_function_starts(b, err);
    if (!rc)
        rc = exti__macho_shift_data_in_code(b, err);
    return rc ? rc : move_commands(b, err);
}

/* ---- the second header ----------------------------------------------------------------------- */

/* Commands that only dyld reads, and dyld reads them in the first header.  Edits make these
 * commands longer; without them the rest fits where the old header was. */
static bool can_be_left_out(uint32_t cmd)
{
    switch (cmd) {
    case LC_ID_DYLIB:
    case LC_LOAD_DYLIB:
    case LC_LOAD_WEAK_DYLIB:
    case LC_REEXPORT_DYLIB:
    case LC_LOAD_UPWARD_DYLIB:
    case LC_RPATH:
    case LC_CODE_SIGNATURE:
        return true;
    default:
        return false;
    }
}

/* Makes __TEXT start at the second header. */
static void begin_text_later(uint8_t *p, uint64_t shift)
{
    uint8_t *vmaddr = p + SEGMENT_VMADDR, *vmsize = vmaddr + 8, *filesize = vmaddr + 24;

    exti__put_u64(vmaddr, exti__macho_u64(vmaddr) + shift, false);
    exti__put_u64(vmsize, exti__macho_u64(vmsize) - shift, false);
    exti__put_u64(filesize, exti__macho_u64(filesize) - shift, false);
}

int exti__macho_second_header(const struct macho_build *b, struct exti_buf *out,
                              struct exti_error *err)
{
    const size_t start = out->n;
    const bool all = b->commands.n <= b->f->room_end - MACH_HEADER_64_SIZE;
    uint32_t count = 0;
    size_t at = 0;
    int rc = exti__buf_append(out, b->f->file.p, MACH_HEADER_64_SIZE, err);

    while (!rc && at + 8 <= b->commands.n) {
        const uint8_t *p = b->commands.p + at;
        const uint32_t cmd = exti__macho_u32(p), size = exti__macho_u32(p + 4);
        const size_t copy = out->n;

        if (all || !can_be_left_out(cmd)) {
            rc = exti__buf_append(out, p, size, err);
            count++;
            if (!rc && cmd == LC_SEGMENT_64 &&
                !strncmp((const char *)p + SEGMENT_NAME, "__TEXT", 16))
                begin_text_later(out->p + copy, b->shift);
        }
        at += size;
    }
    if (rc)
        return rc;
    if (out->n - start > b->f->room_end)
        return exti__fail(err, EXTI_E_UNSUPPORTED, b->f->file.base,
                          "a second header of %zu bytes does not fit into the old one's %" PRIu64,
                          out->n - start, b->f->room_end);
    exti__put_u32(out->p + start + 16, count, false);
    exti__put_u32(out->p + start + 20, (uint32_t)(out->n - start - MACH_HEADER_64_SIZE), false);
    exti__put_u32(out->p + start + 24, b->header_flags, false);
    return exti__buf_zeros(out, (size_t)b->f->room_end - (out->n - start), err);
}
