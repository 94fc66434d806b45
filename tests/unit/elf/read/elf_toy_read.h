/* Reading hand-made files. */
#ifndef TESTS_UNIT_ELF_READ_ELF_TOY_READ_H
#define TESTS_UNIT_ELF_READ_ELF_TOY_READ_H

#include "tests/support/exti_test.h"

#include "base/mem.h"
#include "elf/elf_format.h"
#include "tests/unit/elf/elf_toy.h"

struct fixture {
    struct elf_toy toy;
    struct exti_image image;
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
    exti__image_clear(&f->image);
    return 0;
}

#define read_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline int read_toy(struct fixture *f)
{
    f->err = (struct exti_error){0};
    return exti__elf_format.read(exti__span(f->toy.b, f->toy.n), &f->image, &f->err);
}

static inline size_t value_of(const struct elf_toy *t, uint64_t tag)
{
    for (size_t i = 0; i < t->dyn_slots; i++) {
        size_t at = t->dyn + i * 2 * toy_word(t);

        if (toy_get(t, at, toy_word(t)) == tag)
            return at + toy_word(t);
    }
    fail_msg("no tag %llx", (unsigned long long)tag);
    return 0;
}

/* Gives every entry with that tag another tag, which nothing reads. */
static inline void forget_tag(struct elf_toy *t, uint64_t tag)
{
    for (size_t i = 0; i < t->dyn_slots; i++) {
        size_t at = t->dyn + i * 2 * toy_word(t);

        if (toy_get(t, at, toy_word(t)) == tag)
            toy_put(t, at, toy_word(t), DT_DEBUG);
    }
}

static inline void assert_symbol(const struct exti_image *im, size_t i, const char *name,
                                 const char *version, uint32_t flags)
{
    assert_string_equal(im->symbols[i].name, name);
    if (version)
        assert_string_equal(im->symbols[i].version, version);
    else
        assert_null(im->symbols[i].version);
    assert_int_equal(im->symbols[i].flags, flags);
}

#endif
