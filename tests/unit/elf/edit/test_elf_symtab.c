#include "tests/unit/elf/edit/elf_toy_plan.h"

/* Turns the toy's .dynsym section into a .symtab of three symbols: entry 0, an absolute _DYNAMIC as
 * some linkers make it, and an absolute object 8 bytes behind it. */
static size_t add_symtab(struct elf_toy *t)
{
    const size_t shdr = t->shdr + 3 * SHDR, at = t->n;

    toy_put(t, shdr + 4, 4, SHT_SYMTAB);
    toy_put(t, shdr + 8, 8, 0);
    toy_put(t, shdr + 16, 8, 0);
    toy_put(t, shdr + 24, 8, at);
    toy_put(t, shdr + 32, 8, 3 * 24);
    toy_put(t, shdr + 56, 8, 24);
    t->n += 24;
    toy_sym(t, 0, STB_LOCAL, STT_OBJECT, SHN_ABS, TOY_DATA_VADDR);
    toy_sym(t, 0, STB_LOCAL, STT_OBJECT, SHN_ABS, TOY_DATA_VADDR + 8);
    return at;
}

static void absolute_dynamic_symbol_follows_the_section(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .id = "x", .needed = one_more,
                                                  .needed_count = 1};
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    size_t symtab;

    new_toy(f);
    while (toy_get(t, t->dyn + (t->dyn_slots - 2) * 16, 8) == DT_NULL)
        add_tag(t, DT_DEBUG, 0);
    symtab = add_symtab(t);
    make_checked_copy(f, &opts);
    memcpy(t->b, f->out, sizeof t->b);
    for (size_t i = 0; i < TOY_PHDRS + 1; i++)
        if (toy_get(t, header(t, i, 0), 4) == PT_DYNAMIC)
            assert_int_equal(toy_get(t, symtab + 24 + 8, 8), toy_get(t, header(t, i, 16), 8));
    assert_int_not_equal(toy_get(t, symtab + 24 + 8, 8), TOY_DATA_VADDR);
    assert_int_equal(toy_get(t, symtab + 48 + 8, 8), TOY_DATA_VADDR + 8);
}

/* The section header of type SHT_SYMTAB covers bytes that the loader maps, so it is wrong. */
static void mapped_symtab_is_left_alone(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .flags = EXTI_RW_CLEAR_UNIQUE};
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    new_toy(f);
    toy_put(t, t->shdr + 3 * SHDR + 4, 4, SHT_SYMTAB);
    make_checked_copy(f, &opts);
    assert_int_equal(f->plan.count, 1); /* the one in DT_SYMTAB */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        plan_test(absolute_dynamic_symbol_follows_the_section),
        plan_test(mapped_symtab_is_left_alone),
    };

    return cmocka_run_group_tests_name("elf/elf_symtab", tests, NULL, NULL);
}
