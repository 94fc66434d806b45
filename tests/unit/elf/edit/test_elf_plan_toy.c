/* Hand-made files that the plan operation refuses. */
#include "tests/unit/elf/edit/elf_toy_plan.h"

static void programs_are_recognised_by_their_tags(void **state)
{
    static const struct exti_rewrite_opts unpin = {OPTS, .flags = EXTI_RW_CLEAR_NODELETE};
    struct fixture *f = *state;

    new_toy(f); /* like libc.so.6, a library that also runs */
    toy_put(&f->toy, header(&f->toy, 3, 0), 4, PT_INTERP);
    make_checked_copy(f, &unpin);
    new_toy(f);
    toy_put(&f->toy, header(&f->toy, 3, 0), 4, PT_INTERP);
    toy_put(&f->toy, tag_at(&f->toy, DT_SONAME), 8, DT_DEBUG);
    assert_refused(f, &longer, EXTI_E_UNSUPPORTED, f->toy.note,
                   "a program: it has PT_INTERP, DT_DEBUG and no DT_SONAME");
}

static void too_many_headers_are_refused(void **state)
{
    enum { MANY = 1025 };
    struct fixture *f = *state;

    new_toy(f);
    toy_put(&f->toy, 32, 8, f->toy.n);
    toy_put(&f->toy, 56, 2, MANY);
    memcpy(f->in, f->toy.b, f->toy.n);
    memcpy(f->in + f->toy.n, f->toy.b + f->toy.phdr, TOY_PHDRS * PHDR);
    f->in_n = f->toy.n + MANY * PHDR;
    assert_refused(f, &longer, EXTI_E_UNSUPPORTED, f->toy.n, "1025 entries, at most 1024");
}

static void new_names_in_a_mips_hash_table_are_refused(void **state)
{
    static const struct exti_rename renames[] = {{"export", "exqpsu"}, {"import", "imqpsu"}};
    static const struct exti_rewrite_opts both = {OPTS, .renames = renames, .rename_count = 2};
    static const struct exti_rewrite_opts import = {OPTS, .renames = renames + 1,
                                                    .rename_count = 1};
    struct fixture *f = *state;

    new_toy(f);
    toy_put(&f->toy, 18, 2, EM_MIPS);
    toy_put(&f->toy, tag_at(&f->toy, DT_GNU_HASH), 8, DT_MIPS_XHASH);
    assert_refused(f, &both, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET, "DT_MIPS_XHASH");
    make_checked_copy(f, &import);
}

/* Section 1 is the dynamic section, section 2 its strings. */
static void link_sections(struct elf_toy *t)
{
    toy_put(t, t->shdr + SHDR + 40, 4, 2);
}

static void sections_that_contradict_the_dynamic_section_are_refused(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    new_toy(f);
    link_sections(t);
    make_checked_copy(f, &longer);

    new_toy(f);
    link_sections(t);
    toy_put(t, t->shdr + 2 * SHDR + 16, 8, t->str + 0x10);
    assert_refused(f, &longer, EXTI_E_FORMAT, t->shdr + 2 * SHDR, "the loader finds DT_STRTAB");

    new_toy(f);
    link_sections(t);
    toy_put(t, t->shdr + 2 * SHDR + 24, 8, t->str + 0x10);
    assert_refused(f, &longer, EXTI_E_FORMAT, t->shdr + 2 * SHDR, "the loader finds DT_STRTAB");

    new_toy(f);
    toy_put(t, t->shdr + SHDR + 16, 8, TOY_DATA_VADDR + 0x10);
    assert_refused(f, &longer, EXTI_E_FORMAT, t->shdr + SHDR, "the loader finds PT_DYNAMIC");

    new_toy(f); /* one that is not mapped is a tool's own */
    toy_put(t, t->shdr + SHDR + 8, 8, 0);
    toy_put(t, t->shdr + SHDR + 16, 8, TOY_DATA_VADDR + 0x10);
    make_checked_copy(f, &longer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        plan_test(programs_are_recognised_by_their_tags),
        plan_test(too_many_headers_are_refused),
        plan_test(sections_that_contradict_the_dynamic_section_are_refused),
        plan_test(new_names_in_a_mips_hash_table_are_refused),
    };

    return cmocka_run_group_tests_name("elf/elf_plan_toy", tests, NULL, NULL);
}
