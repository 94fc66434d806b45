#include "tests/unit/elf/read/elf_toy_read.h"

/* Links with small steps make a few bytes look like many entries. */
static void walk_of_overlapping_version_entries_ends(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    elf_toy_make(t, true, false);
    forget_tag(t, DT_HASH);
    forget_tag(t, DT_GNU_HASH);
    toy_put(t, value_of(t, DT_VERNEED), 8, t->hash);
    /* As a Verneed: no entries, a file name that exists, the next one 4 bytes on. */
    for (size_t at = t->hash; at < t->str; at += 4)
        toy_put(t, at, 4, 4);
    assert_exti(read_toy(f), EXTI_E_FORMAT, &f->err, ANY_OFFSET);
    assert_says(&f->err, "DT_VERNEED: its entries overlap");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        read_test(walk_of_overlapping_version_entries_ends),
    };

    return cmocka_run_group_tests_name("elf/elf_version", tests, NULL, NULL);
}
