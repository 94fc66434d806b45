/* The parts of a rewrite for their tests: commands, __LINKEDIT and signature, put together as
 * the planner does without a shift. */
#ifndef TESTS_UNIT_MACHO_EDIT_H
#define TESTS_UNIT_MACHO_EDIT_H

#include <string.h>

#include "base/mem.h"
#include "macho/edit/macho_linkedit.h"
#include "macho/edit/macho_sign.h"
#include "tests/support/exti_test.h"

struct macho_making {
    struct macho_file f;
    struct macho_build b;
    struct exti_rewrite_opts opts;
    struct exti_buf linkedit;
    uint64_t fileoff;
};

static inline void making_open(struct test *t, struct macho_making *m, struct exti_span file)
{
    *m = (struct macho_making){.opts.size = sizeof m->opts, .linkedit = exti__buf(SIZE_MAX)};
    assert_ok(exti__macho_open(file, &m->f, &t->err), &t->err);
    m->b = (struct macho_build){.f = &m->f, .opts = &m->opts, .commands = exti__buf(SIZE_MAX)};
    if (exti__macho_signature_read(&m->f, &m->b.signature, NULL))
        m->b.signature = (struct macho_signature){0};
    m->b.identifier = m->b.signature.identifier ? m->b.signature.identifier : "made";
}

static inline void making_close(struct macho_making *m)
{
    for (size_t i = 0; i < MACHO_PIECES; i++)
        exti__buf_free(&m->b.pieces[i].data);
    exti__buf_free(&m->b.commands);
    exti__buf_free(&m->b.body);
    exti__buf_free(&m->linkedit);
    exti__free(m->b.ordinals);
    exti__macho_close(&m->f);
}

static inline void making_replace(struct test *t, struct macho_making *m,
                                  enum macho_piece_kind kind, const void *p, size_t n)
{
    assert_ok(exti__buf_append(exti__macho_piece_new(&m->b, kind, n), p, n, &t->err), &t->err);
}

/* The whole copy; the fixture frees it. */
static inline struct exti_span making_put_together(struct test *t, struct macho_making *m)
{
    const struct exti_span file = m->f.file;
    struct exti_buf signature = exti__buf(SIZE_MAX);
    struct exti_span all;
    uint8_t *p;
    size_t n;

    assert_ok(exti__macho_linkedit(&m->b, &m->linkedit, &m->fileoff, &t->err), &t->err);
    n = (size_t)m->fileoff + m->linkedit.n;
    all = exti__span(test_alloc(t, n), n);
    p = (uint8_t *)(uintptr_t)all.p;
    memcpy(p, file.p, (size_t)m->fileoff);
    memset(p + MACH_HEADER_64_SIZE, 0, m->f.sizeofcmds);
    memcpy(p + MACH_HEADER_64_SIZE, m->b.commands.p, m->b.commands.n);
    exti__put_u32(p + 16, m->b.command_count, false);
    exti__put_u32(p + 20, (uint32_t)m->b.commands.n, false);
    exti__put_u32(p + 24, m->b.header_flags, false);
    memcpy(p + m->fileoff, m->linkedit.p, m->linkedit.n);
    if (!m->b.resign)
        return all;
    assert_ok(exti__macho_sign(&m->b.signature, m->b.identifier,
                               &(struct macho_signable){&all, 1, m->f.text->filesize, 0},
                               &signature, &t->err),
              &t->err);
    p = test_alloc(t, n + signature.n);
    memcpy(p, all.p, n);
    memcpy(p + n, signature.p, signature.n);
    all = exti__span(p, n + signature.n);
    exti__buf_free(&signature);
    return all;
}

/* Checks that the reader accepts the copy, and its signature if it has one. */
static inline void making_check(struct test *t, struct exti_span copy)
{
    struct macho_file f;
    uint64_t bad = 0;

    assert_ok(exti__macho_open(copy, &f, &t->err), &t->err);
    if (f.pieces[MACHO_SIGNATURE].present) {
        assert_ok(exti__macho_signature_check(&f, &bad, &t->err), &t->err);
        assert_true(bad == EXTI_NO_OFFSET);
    }
    exti__macho_close(&f);
}

#endif
