#include "tests/unit/elf/edit/elf_toy_plan.h"

static void strings_outside_the_table_are_reported(void **state)
{
    static const struct exti_rewrite_opts path = {OPTS, .path_prepend = "/ctx"};
    static const struct {
        uint64_t tag;
        const struct exti_rewrite_opts *opts;
        const char *says;
    } cases[] = {
        {DT_NEEDED, &longer, "DT_NEEDED"},        {DT_SONAME, &longer, "PT_DYNAMIC: string"},
        {DT_SONAME, &path, "PT_DYNAMIC: string"}, {DT_RUNPATH, &path, "DT_RUNPATH"},
        {DT_RUNPATH, &longer, "DT_RUNPATH"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        new_toy(f);
        toy_put(&f->toy, tag_at(&f->toy, cases[i].tag) + 8, 8, 0x1000);
        assert_refused(f, cases[i].opts, EXTI_E_FORMAT, f->toy.str + 0x1000, cases[i].says);
    }
    new_toy(f);
    toy_put(&f->toy, tag_at(&f->toy, DT_RUNPATH), 8, DT_RPATH);
    toy_put(&f->toy, tag_at(&f->toy, DT_RPATH) + 8, 8, 0x1000);
    assert_refused(f, &longer, EXTI_E_FORMAT, f->toy.str + 0x1000, "DT_RPATH");
    new_toy(f);
    add_tag(&f->toy, DT_AUXILIARY, 0x1000);
    assert_refused(f, &longer, EXTI_E_FORMAT, f->toy.str + 0x1000, "PT_DYNAMIC: string");
}

static void both_relocation_counts_make_room(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .needed = one_more, .needed_count = 1,
                                                  .flags = EXTI_RW_SYMBOLIC};
    struct fixture *f = *state;
    struct exti_image image = {0};

    new_toy(f);
    add_tag(&f->toy, DT_RELACOUNT, 1);
    add_tag(&f->toy, DT_RELCOUNT, 1);
    make_checked_copy(f, &opts);
    assert_ok(exti__elf_format.read(exti__span(f->out, f->out_n), &image, &f->err), &f->err);
    assert_int_equal(image.info.needed_count, 2);
    assert_true(image.info.flags & EXTI_IMAGE_SYMBOLIC);
    exti__image_clear(&image);
    /* The section has not moved: its header is unchanged, behind the new segment for the
     * strings. */
    assert_memory_equal(f->out + header(&f->toy, 3, 0), f->in + header(&f->toy, 2, 0), PHDR);
}

/* Its value is relative to its own slot, and the entry moves to another slot. */
static void mips_debug_pointer_keeps_its_target(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .path_set = ""};
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    uint64_t was, slot = 0;

    new_toy(f);
    toy_put(t, 18, 2, EM_MIPS);
    add_tag(t, DT_MIPS_RLD_MAP_REL, 0x40);
    was = tag_at(t, DT_MIPS_RLD_MAP_REL);
    make_checked_copy(f, &opts);
    memcpy(t->b, f->out, sizeof t->b);
    slot = tag_at(t, DT_MIPS_RLD_MAP_REL);
    assert_int_equal(was - slot, 16);
    assert_int_equal(slot + toy_get(t, slot + 8, 8), was + 0x40);
}

/* Only the tags change: what the entries say stays, and so does every other byte. */
static void withheld_constructors_keep_their_values(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .flags = EXTI_RW_WITHHOLD};
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    uint64_t init, array;

    new_toy(f);
    add_tag(t, DT_INIT, 0x400);
    add_tag(t, DT_INIT_ARRAY, 0x480);
    add_tag(t, DT_INIT_ARRAYSZ, 16);
    init = tag_at(t, DT_INIT);
    array = tag_at(t, DT_INIT_ARRAY);
    make_checked_copy(f, &opts);
    toy_put(t, init, 8, EXTI_DT_INIT);
    toy_put(t, array, 8, EXTI_DT_INIT_ARRAY);
    assert_int_equal(f->out_n, t->n);
    assert_memory_equal(f->out, t->b, t->n);
    /* A second time nothing is left to change. */
    make_checked_copy(f, &opts);
    assert_int_equal(f->out_n, t->n);
    assert_memory_equal(f->out, t->b, t->n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        plan_test(strings_outside_the_table_are_reported),
        plan_test(both_relocation_counts_make_room),
        plan_test(mips_debug_pointer_keeps_its_target),
        plan_test(withheld_constructors_keep_their_values),
    };

    return cmocka_run_group_tests_name("elf/elf_dynamic", tests, NULL, NULL);
}
