/* Shared by the tests of binding opcodes: reads a stream of opcodes into a list. */
#ifndef TESTS_UNIT_MACHO_BIND_LISTS_H
#define TESTS_UNIT_MACHO_BIND_LISTS_H

#include "tests/support/exti_test.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "macho/read/macho_bind.h"

struct fixture {
    struct test *t;
    struct exti_error err;
    struct macho_file m;
    struct macho_segment segments[2];
    struct exti_buf out, text;
    struct macho_bind list[2000];
    size_t n;
};

static inline int setup(void **state)
{
    static struct fixture f;
    void *t = NULL;

    memset(&f, 0, sizeof f);
    f.out = exti__buf(1 << 20);
    f.text = exti__buf(1 << 20);
    test_setup(&t);
    f.t = t;
    *state = &f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    void *t = f->t;

    exti__mem_fail_after(-1);
    exti__buf_free(&f->out);
    exti__buf_free(&f->text);
    return test_teardown(&t);
}

#define bind_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline int keep_bind(void *user, const struct macho_bind *b, struct exti_error *err)
{
    struct fixture *f = user;

    (void)err;
    if (f->n < ARRAY_SIZE(f->list))
        f->list[f->n] = *b;
    f->n++;
    return 0;
}

/* Makes a file whose piece `kind` is the stream. */
static inline void use_stream(struct fixture *f, enum macho_piece_kind kind, const void *bytes,
                              size_t n)
{
    static const uint8_t room[4096];

    f->segments[0] = (struct macho_segment){.name = "__TEXT", .vmsize = 0x1000};
    f->segments[1] = (struct macho_segment){.name = "__DATA", .vmaddr = 0x1000, .vmsize = 0x4000};
    f->m = (struct macho_file){.file = exti__span(room, sizeof room),
                               .segments = f->segments,
                               .segment_count = 2,
                               .dylib_count = 3};
    f->m.file.base = 0x100;
    f->m.pieces[kind].s = exti__span(bytes, n);
    f->m.pieces[kind].s.base = 0x500;
    f->n = 0;
    f->err = (struct exti_error){0};
}

static inline int read_binds(struct fixture *f, enum macho_piece_kind kind, const void *bytes,
                             size_t n)
{
    use_stream(f, kind, bytes, n);
    return exti__macho_binds(&f->m, kind, keep_bind, f, &f->err);
}

#endif
