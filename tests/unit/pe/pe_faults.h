/* Fixture of an opened toy DLL, and tables of faults: one wrong field and the expected error. */
#ifndef TESTS_UNIT_PE_FAULTS_H
#define TESTS_UNIT_PE_FAULTS_H

#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "pe/read/pe_file.h"
#include "tests/support/exti_test.h"
#include "tests/unit/pe/pe_toy.h"

struct pe_fixture {
    struct pe_toy toy;
    struct pe_file file;
    struct exti_image image;
    struct exti_error err;
};

static int pe_setup(void **state)
{
    static struct pe_fixture f;

    f = (struct pe_fixture){0};
    *state = &f;
    return 0;
}

static int pe_teardown(void **state)
{
    struct pe_fixture *f = *state;

    exti__mem_fail_after(-1);
    exti__pe_close(&f->file);
    exti__image_clear(&f->image);
    return 0;
}

#define pe_test(f) cmocka_unit_test_setup_teardown(f, pe_setup, pe_teardown)

static inline int pe_open_toy(struct pe_fixture *f)
{
    exti__pe_close(&f->file);
    f->err = (struct exti_error){0};
    return exti__pe_open(exti__span(f->toy.b, f->toy.n), &f->file, &f->err);
}

static inline void pe_make(struct pe_fixture *f, struct pe_toy_opts o)
{
    pe_toy_make(&f->toy, o);
    assert_ok(pe_open_toy(f), &f->err);
}

struct pe_fault {
    const char *what; /* part of the message */
    size_t at, width;
    uint64_t value;
    int code;
    uint64_t offset;
};

/* For each fault, makes the toy anew, lets `attempt` read it, and asserts the expected error. */
static inline void assert_faults(struct pe_fixture *f, struct pe_toy_opts o,
                                 const struct pe_fault *faults, size_t count,
                                 int (*attempt)(struct pe_fixture *f))
{
    for (size_t i = 0; i < count; i++) {
        const struct pe_fault *x = &faults[i];
        int rc;

        pe_toy_make(&f->toy, o);
        ptoy_put(&f->toy, x->at, x->width, x->value);
        f->err = (struct exti_error){0};
        rc = attempt(f);
        if (rc == 0)
            fail_msg("%s: not noticed", x->what);
        if (rc != x->code || (x->offset != ANY_OFFSET && f->err.offset != x->offset))
            print_error("%s: %s\n", x->what, f->err.message);
        assert_exti(rc, x->code, &f->err, x->offset);
        assert_says(&f->err, x->what);
    }
}

#endif
