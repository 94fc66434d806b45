/* Shared by the tests of the Mach-O reader: a toy file, opened and closed. */
#ifndef TESTS_UNIT_MACHO_READ_H
#define TESTS_UNIT_MACHO_READ_H

#include "tests/support/exti_test.h"

#include <string.h>

#include "base/mem.h"
#include "macho/read/macho_file.h"
#include "tests/unit/macho/macho_toy.h"

/* Offsets within a section_64. */
enum { S_ADDR = 32, S_SIZE = 40, S_OFFSET = 48, S_NRELOC = 60, S_FLAGS = 64 };

struct fixture {
    struct macho_toy toy;
    struct macho_file file;
    struct exti_error err;
};

static inline int setup(void **state)
{
    static struct fixture f;

    f = (struct fixture){0};
    *state = &f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    exti__mem_fail_after(-1);
    exti__macho_close(&f->file);
    return 0;
}

#define read_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline int open_toy(struct fixture *f)
{
    exti__macho_close(&f->file);
    f->err = (struct exti_error){0};
    return exti__macho_open(exti__span(f->toy.b, f->toy.n), &f->file, &f->err);
}

#endif
