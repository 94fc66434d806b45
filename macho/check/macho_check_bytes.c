/* The contents of segments: the original's bytes, with a page shift except for addresses, which
 * grow by the shift.  Also the space around the load commands. */
#include "macho/check/macho_check_bytes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "macho/check/macho_check_report.h"
#include "macho/check/macho_check_word.h"
#include "macho/read/macho_word.h"

static const char *section_name_at(const struct macho_file *f, uint64_t at)
{
    for (size_t i = 0; i < f->section_count; i++)
        if (f->sections[i].offset && at >= f->sections[i].offset &&
            at - f->sections[i].offset < f->sections[i].size)
            return f->sections[i].name;
    for (size_t i = 0; i < f->segment_count; i++)
        if (at >= f->segments[i].fileoff && at - f->segments[i].fileoff < f->segments[i].filesize)
            return f->segments[i].name;
    return "no segment";
}

/* Reports the first difference in the original's range [at, end). */
static void compare_range(struct macho_check *c, uint64_t at, uint64_t end)
{
    const uint8_t *b = c->before.file.p, *a = c->after.file.p + c->shift;

    if (at >= end || c->judge.stop || memcmp(b + at, a + at, (size_t)(end - at)) == 0)
        return;
    while (b[at] == a[at])
        at++;
    exti__macho_finding(c, at + c->shift, "%s: byte 0x%02x, not 0x%02x",
                        section_name_at(&c->before, at), a[at], b[at]);
}

static int by_word_place(const void *a, const void *b)
{
    const struct macho_word *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return (int)y->size - x->size;
}

static void compare_word(struct macho_check *c, const struct macho_word *w)
{
    const uint8_t *b = c->before.file.p + w->at, *a = c->after.file.p + w->at + c->shift;
    const uint64_t was = w->size == 8 ? exti__macho_u64(b) : exti__macho_u32(b),
                   now = w->size == 8 ? exti__macho_u64(a) : exti__macho_u32(a);

    if (now != was + c->shift)
        exti__macho_finding(c, w->at + c->shift,
                            "%s: address 0x%" PRIx64 ", not 0x%" PRIx64 " (0x%" PRIx64
                            " in the original)",
                            section_name_at(&c->before, w->at), now, was + c->shift, was);
}

static int compare_moved(struct macho_check *c, uint64_t at, uint64_t end, struct exti_error *err)
{
    struct macho_words words = {NULL, 0, 0};
    int rc = exti__macho_words(c, &words, err);

    if (words.n)
        qsort(words.v, words.n, sizeof *words.v, by_word_place);
    for (size_t i = 0; !rc && i < words.n && !c->judge.stop; i++) {
        const struct macho_word *w = &words.v[i];

        if (w->at < at || w->at > end - w->size)
            continue;
        compare_range(c, at, w->at);
        compare_word(c, w);
        at = w->at + w->size;
    }
    if (!rc)
        compare_range(c, at, end);
    exti__free(words.v);
    return rc;
}

static void compare_planned(struct macho_check *c, uint64_t at, uint64_t end)
{
    uint64_t from, to;

    for (size_t i = 0; exti__plan_part(c->plan, i, at, end, &from, &to); i++)
        compare_range(c, from, to);
}

int exti__macho_step_bytes(struct macho_check *c, struct exti_error *err)
{
    const uint64_t at = c->before.room_end, end = c->before.linkedit->fileoff;

    if (c->after.linkedit->fileoff != end + c->shift) {
        exti__macho_finding(c, EXTI_NO_OFFSET,
                            "__LINKEDIT starts at 0x%" PRIx64 ", not at 0x%" PRIx64,
                            c->after.linkedit->fileoff, end + c->shift);
        return 0;
    }
    if (end < at)
        return 0;
    if (c->shift)
        return compare_moved(c, at, end, err);
    if (c->plan)
        compare_planned(c, at, end);
    else
        compare_range(c, at, end);
    return 0;
}

/* ---- around the load commands ---------------------------------------------------------------- */

/* The space after the commands must be zero or unchanged. */
static void check_free(struct macho_check *c, uint64_t at, uint64_t end)
{
    const struct exti_span b = c->before.file, a = c->after.file;

    for (; at < end; at++) {
        const bool was_free = at >= c->before.commands_end && at < c->before.room_end;

        if (!a.p[at] || (was_free && a.p[at] == b.p[at]))
            continue;
        exti__macho_finding(c, at, "after the load commands: byte 0x%02x, not 0", a.p[at]);
        return;
    }
}

/* In the second header, __TEXT starts at that header. */
static bool same_text(const struct macho_check *c, const uint8_t *p, const uint8_t *q, size_t n)
{
    const uint64_t fileoff = exti__macho_u64(q + 40);

    /* The first 24 bytes hold cmdsize. */
    return memcmp(p, q, 24) == 0 && exti__macho_u64(q + 24) == exti__macho_u64(p + 24) + c->shift &&
           exti__macho_u64(q + 32) == exti__macho_u64(p + 32) - c->shift &&
           (fileoff == 0 || fileoff == c->shift) &&
           exti__macho_u64(q + 48) == exti__macho_u64(p + 48) - c->shift &&
           memcmp(p + 56, q + 56, n - 56) == 0;
}

/* Commands that the second header may omit, because dyld reads the first. */
static bool may_lack(const struct macho_command *cmd)
{
    return cmd->cmd != LC_SEGMENT_64 && cmd->cmd != LC_UUID && cmd->cmd != LC_BUILD_VERSION;
}

/* Whether the `n` bytes at `p` are the first header's commands, in order. */
static bool same_commands(const struct macho_check *c, const uint8_t *p, uint64_t n, uint32_t count)
{
    const struct macho_file *a = &c->after;
    const uint8_t *end = p + n;
    uint32_t seen = 0;

    for (size_t i = 0; i < a->command_count; i++) {
        const struct macho_command *cmd = &a->commands[i];
        const bool fits = (size_t)(end - p) >= cmd->s.n;

        if (fits && (i == a->text->command ? same_text(c, cmd->s.p, p, cmd->s.n)
                                           : memcmp(cmd->s.p, p, cmd->s.n) == 0)) {
            p += cmd->s.n;
            seen++;
        } else if (!may_lack(cmd)) {
            return false;
        }
    }
    return p == end && seen == count;
}

/* Code that takes the address of its own header (getsectiondata, dladdr) uses this one. */
static void check_second_header(struct macho_check *c)
{
    const struct exti_span a = c->after.file;
    const uint8_t *p = a.p + c->shift;
    const uint64_t size = exti__macho_u32(p + 20), end = MACH_HEADER_64_SIZE + size;

    if (memcmp(p, a.p, 16) != 0 || memcmp(p + 24, a.p + 24, 8) != 0 || end > c->before.room_end ||
        !same_commands(c, p + MACH_HEADER_64_SIZE, size, exti__macho_u32(p + 16))) {
        exti__macho_finding(c, c->shift,
                            "second header: differs from the first by more than its position");
        return;
    }
    check_free(c, c->shift + end, c->shift + c->before.room_end);
}

int exti__macho_step_room(struct macho_check *c, struct exti_error *err)
{
    (void)err;
    if (!c->shift) {
        check_free(c, c->after.commands_end, c->after.room_end);
        return 0;
    }
    if (c->after.commands_end > c->shift) {
        exti__macho_finding(c, c->shift, "the load commands overlap the second header");
        return 0;
    }
    check_free(c, c->after.commands_end, c->shift);
    check_second_header(c);
    return 0;
}
