#include "tests/unit/elf/edit/elf_toy_plan.h"

enum { APART = 0x1600 };

/* The same toy with its data a page further in the file, so that there is room behind its text.
 * Returns the end of the text. */
static size_t new_roomy_toy(struct fixture *f)
{
    struct elf_toy *t = &f->toy;
    const size_t by = APART - TOY_DATA;

    new_toy(f);
    memmove(t->b + APART, t->b + TOY_DATA, t->n - TOY_DATA);
    memset(t->b + TOY_DATA, 0, APART - TOY_DATA < t->n - TOY_DATA ? by : t->n - TOY_DATA);
    t->n += by;
    t->dyn += by;
    t->shdr += by;
    toy_put(t, 40, 8, t->shdr);
    toy_put(t, header(t, 1, 8), 8, APART);
    toy_put(t, header(t, 2, 8), 8, APART);
    toy_put(t, t->shdr + SHDR + 24, 8, APART);
    return t->verdef + 28;
}

static void make_and_assert_grown(struct fixture *f, bool grown)
{
    make_checked_copy(f, &longer);
    assert_int_equal(f->plan.tail.n != 0, grown);
}

/* The strings need no new segment as long as the bytes behind the text are unused. */
static void strings_go_only_into_unused_bytes(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    size_t end = new_roomy_toy(f);

    make_and_assert_grown(f, false);

    new_roomy_toy(f);
    t->b[end + 8] = 1; /* something unknown */
    make_and_assert_grown(f, true);

    new_roomy_toy(f);
    toy_put(t, t->shdr + 4 * SHDR + 24, 8, end); /* a section */
    make_and_assert_grown(f, true);

    new_roomy_toy(f);
    toy_put(t, header(t, 3, 0), 4, 0x6fffff00); /* a segment of some kind */
    toy_put(t, header(t, 3, 8), 8, end);
    toy_put(t, header(t, 4, 0), 4, PT_NULL);
    make_and_assert_grown(f, true);

    new_roomy_toy(f);
    memcpy(t->b + end, t->b + t->shdr, SHDR); /* the section headers */
    toy_put(t, 40, 8, end);
    toy_put(t, 60, 2, 1);
    make_and_assert_grown(f, true);
}

/* Addresses and offsets of the segment are not congruent, so aligned structures cannot go there. */
static void segment_with_incongruent_offset_does_not_grow(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    new_toy(f);
    toy_put(t, header(t, 3, 0), 4, PT_NULL);
    toy_put(t, header(t, 4, 0), 4, PT_LOAD);
    toy_put(t, header(t, 4, 4), 4, PF_R);
    toy_put(t, header(t, 4, 8), 8, 0x1000);
    toy_put(t, header(t, 4, 16), 8, 0x5008);
    toy_put(t, header(t, 4, 24), 8, 0x5008);
    toy_put(t, header(t, 4, 32), 8, 16);
    toy_put(t, header(t, 4, 40), 8, 16);
    toy_put(t, header(t, 4, 48), 8, 8);
    t->n = 0x1800;
    make_and_assert_grown(f, true);
}

static void no_address_space_left_is_reported(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    elf_toy_make(t, false, false);
    toy_put(t, t->phdr + 32 + 20, 4, 0xffffff00 - TOY_DATA_VADDR);
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, "no address space left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        plan_test(strings_go_only_into_unused_bytes),
        plan_test(segment_with_incongruent_offset_does_not_grow),
        plan_test(no_address_space_left_is_reported),
    };

    return cmocka_run_group_tests_name("elf/elf_place", tests, NULL, NULL);
}
