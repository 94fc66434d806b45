#include "tests/unit/elf/read/elf_toy_read.h"

static void symbols_are_counted_by_either_hash_table_or_the_section(void **state)
{
    struct fixture *f = *state;

    for (int left = 0; left < 4; left++) {
        elf_toy_make(&f->toy, true, false);
        if (!(left & 1))
            forget_tag(&f->toy, DT_HASH);
        if (!(left & 2))
            forget_tag(&f->toy, DT_GNU_HASH);
        assert_ok(read_toy(f), &f->err);
        assert_int_equal(f->image.info.symbol_count, 3);
        exti__image_clear(&f->image);
    }
}

static void relocations_count_the_symbols_without_hash_and_sections(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    size_t at;

    elf_toy_make(t, true, false);
    forget_tag(t, DT_HASH);
    forget_tag(t, DT_GNU_HASH);
    toy_put(t, 40, 8, 0); /* e_shoff */
    assert_ok(read_toy(f), &f->err);
    assert_int_equal(f->image.info.symbol_count, 0);
    exti__image_clear(&f->image);

    /* One relocation, in the room of the hash table, names symbol 2. */
    at = t->hash;
    toy_put(t, at, 8, 0x2000);
    toy_put(t, at + 8, 8, (uint64_t)2 << 32 | 6);
    toy_put(t, at + 16, 8, 0);
    t->n = t->dyn + (t->dyn_slots - 3) * 16;
    toy_add(t, 8, DT_RELA);
    toy_add(t, 8, at);
    toy_add(t, 8, DT_RELASZ);
    toy_add(t, 8, 24);
    t->n += 16;
    assert_ok(read_toy(f), &f->err);
    assert_int_equal(f->image.info.symbol_count, 2);
    exti__image_clear(&f->image);

    /* MIPS64 has the symbol first. */
    toy_put(t, 18, 2, EM_MIPS);
    toy_put(t, at + 8, 4, 3);
    assert_ok(read_toy(f), &f->err);
    assert_int_equal(f->image.info.symbol_count, 3);
    exti__image_clear(&f->image);

    toy_put(t, value_of(t, DT_RELA), 8, 0x1800);
    assert_exti(read_toy(f), EXTI_E_FORMAT, &f->err, TOY_DATA);
    assert_says(&f->err, "relocation table: address 0x1800");

    toy_put(t, value_of(t, DT_RELA), 8, at);
    toy_put(t, value_of(t, DT_RELASZ), 8, 0x1000);
    assert_exti(read_toy(f), EXTI_E_FORMAT, &f->err, at);
    assert_says(&f->err, "relocation table: needs 4096 bytes");
}

static void section_that_reaches_into_the_strings_counts_no_symbols(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    elf_toy_make(t, true, false);
    forget_tag(t, DT_HASH);
    forget_tag(t, DT_GNU_HASH);
    toy_put(t, t->shdr + 3 * 64 + 32, 8, (TOY_SYMS + 1) * 24);
    assert_ok(read_toy(f), &f->err);
    assert_int_equal(f->image.info.symbol_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        read_test(symbols_are_counted_by_either_hash_table_or_the_section),
        read_test(relocations_count_the_symbols_without_hash_and_sections),
        read_test(section_that_reaches_into_the_strings_counts_no_symbols),
    };

    return cmocka_run_group_tests_name("elf/elf_symbols", tests, NULL, NULL);
}
