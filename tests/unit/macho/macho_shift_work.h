/* Shared by the tests of the page shift: shifts one file, without the rest of a rewrite. */
#ifndef TESTS_UNIT_MACHO_SHIFT_WORK_H
#define TESTS_UNIT_MACHO_SHIFT_WORK_H

#include <string.h>

#include "base/mem.h"
#include "macho/edit/macho_linkedit.h"
#include "macho/edit/macho_shift.h"
#include "macho/edit/macho_sign.h"
#include "tests/support/exti_test.h"

struct work {
    struct macho_file f;
    struct macho_build b;
    struct exti_rewrite_opts opts;
    bool open;
};

static inline void work_start(struct work *w, const void *bytes, size_t n, uint64_t shift,
                              struct exti_error *err)
{
    memset(w, 0, sizeof *w);
    assert_ok(exti__macho_open(exti__span(bytes, n), &w->f, err), err);
    w->open = true;
    w->opts.size = sizeof w->opts;
    w->b.f = &w->f;
    w->b.opts = &w->opts;
    w->b.shift = shift;
    assert_ok(exti__macho_signature_read(&w->f, &w->b.signature, err), err);
    w->b.resign = w->b.signature.present;
    w->b.identifier = w->b.signature.identifier;
    w->b.header_flags = w->f.flags;
    w->b.command_count = (uint32_t)w->f.command_count;
    w->b.commands = exti__buf(1 << 20);
    assert_ok(
        exti__buf_append(&w->b.commands, w->f.file.p + MACH_HEADER_64_SIZE, w->f.sizeofcmds, err),
        err);
}

static inline void work_finish(struct work *w)
{
    for (size_t i = 0; i < MACHO_PIECES; i++)
        exti__buf_free(&w->b.pieces[i].data);
    exti__buf_free(&w->b.commands);
    exti__buf_free(&w->b.body);
    if (w->open)
        exti__macho_close(&w->f);
    memset(w, 0, sizeof *w);
}

/* The whole copy, laid out as the planner does. */
static inline void work_assemble(struct work *w, struct exti_buf *out, struct exti_error *err)
{
    struct exti_buf linkedit = exti__buf(1 << 28);
    uint8_t header[MACH_HEADER_64_SIZE];
    struct exti_span part;
    uint64_t fileoff;

    assert_ok(exti__macho_linkedit(&w->b, &linkedit, &fileoff, err), err);
    memcpy(header, w->f.file.p, sizeof header);
    exti__put_u32(header + 16, w->b.command_count, false);
    exti__put_u32(header + 20, (uint32_t)w->b.commands.n, false);
    assert_ok(exti__buf_append(out, header, sizeof header, err), err);
    assert_ok(exti__buf_append(out, w->b.commands.p, w->b.commands.n, err), err);
    assert_ok(exti__buf_zeros(out, (size_t)w->b.shift - out->n, err), err);
    assert_ok(exti__macho_second_header(&w->b, out, err), err);
    assert_int_equal(out->n, w->b.shift + w->f.room_end);
    assert_ok(exti__buf_append(out, w->b.body.p, w->b.body.n, err), err);
    assert_int_equal(out->n, fileoff);
    assert_ok(exti__buf_append(out, linkedit.p, linkedit.n, err), err);
    exti__buf_free(&linkedit);
    part = exti__span(out->p, out->n);
    if (w->b.resign)
        assert_ok(exti__macho_sign(
                      &w->b.signature, w->b.identifier,
                      &(struct macho_signable){&part, 1, w->f.text->filesize + w->b.shift, 0},
                      &linkedit, err),
                  err);
    assert_ok(exti__buf_append(out, linkedit.p, linkedit.n, err), err);
    exti__buf_free(&linkedit);
}

#endif
