#include "tests/unit/elf/edit/elf_toy_plan.h"

static const char no_room[] =
    "program header table: no entry can be spared and no room is left behind it";

/* Zeroes the note and everything behind it up to the symbols; there are no hash tables. */
static void new_toy_with_gap(struct fixture *f)
{
    struct elf_toy *t = &f->toy;

    new_toy_without_spare(f);
    memset(t->b + t->note, 0, t->sym - t->note);
    toy_put(t, tag_at(t, DT_HASH), 8, DT_DEBUG);
    toy_put(t, tag_at(t, DT_GNU_HASH), 8, DT_DEBUG);
    toy_put(t, t->shdr + 4 * SHDR + 4, 4, SHT_NULL);
}

static void table_grows_into_an_unused_gap_only(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    size_t gap;

    new_toy_with_gap(f);
    gap = header(t, TOY_PHDRS, 0);
    make_checked_copy(f, &longer);
    assert_int_equal(f->out[56], TOY_PHDRS + 1);

    new_toy_with_gap(f);
    t->b[gap] = 1; /* something unknown */
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);

    new_toy_with_gap(f);
    memset(t->b + gap, 'Z', PHDR); /* patchelf's filler */
    make_checked_copy(f, &longer);
    assert_int_equal(f->out[56], TOY_PHDRS + 1);

    new_toy_with_gap(f);
    add_tag(t, DT_INIT, gap + 8); /* an address for the loader */
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);

    new_toy_with_gap(f);
    add_tag(t, EXTI_DT_INIT_ARRAY, gap + 8); /* one for whoever runs withheld constructors */
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);

    new_toy_with_gap(f);
    toy_put(t, t->sym + 2 * 24 + 8, 8, gap + 8); /* a symbol */
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);

    new_toy_with_gap(f);
    toy_put(t, header(t, 3, 8), 8, gap); /* another segment's part */
    toy_put(t, header(t, 3, 16), 8, gap);
    toy_put(t, header(t, 3, 32), 8, 8);
    toy_put(t, header(t, 3, 40), 8, 8);
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);

    new_toy_with_gap(f);
    toy_put(t, header(t, 1, 8), 8, gap); /* the data's pages start there too */
    toy_put(t, header(t, 1, 16), 8, 0x2000 + gap);
    toy_put(t, header(t, 1, 24), 8, 0x2000 + gap);
    toy_put(t, header(t, 1, 32), 8, TOY_DATA - gap + t->dyn_slots * 16);
    toy_put(t, header(t, 1, 40), 8, TOY_DATA - gap + t->dyn_slots * 16);
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);
}

/* Only its tag refers to the hash table, which is too far behind for the table to push it away. */
static void table_does_not_grow_over_a_hash_table_alone(void **state)
{
    struct fixture *f = *state;

    new_toy_without_spare(f);
    memset(f->toy.b + f->toy.note, 0, f->toy.hash - f->toy.note);
    assert_refused(f, &longer, EXTI_E_NOSPACE, f->toy.phdr, no_room);
}

static void pushed_notes_keep_their_alignment(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    uint64_t to;

    new_toy(f);
    toy_put(t, header(t, 3, 48), 8, 16);
    make_checked_copy(f, &longer);
    memcpy(t->b, f->out, sizeof t->b);
    assert_int_equal(toy_get(t, 56, 2), TOY_PHDRS + 1);
    for (size_t i = 0; i < TOY_PHDRS + 1; i++)
        if (toy_get(t, header(t, i, 0), 4) == PT_NOTE) {
            to = toy_get(t, header(t, i, 8), 8);
            assert_int_equal((to - f->toy.note) % 16, 0);
            assert_memory_equal(f->out + to, f->in + f->toy.note, 24);
        }

    new_toy(f); /* with an impossible alignment the note gives up its entry */
    toy_put(t, header(t, 3, 48), 8, (uint64_t)1 << 63);
    make_checked_copy(f, &longer);
    assert_int_equal(f->out[56], TOY_PHDRS);
}

/* A note whose end wraps around, to just before its start, where a zero lies. */
static void wrap_note(struct elf_toy *t, uint64_t offset)
{
    toy_put(t, header(t, 3, 8), 8, offset);
    toy_put(t, header(t, 3, 32), 8, UINT64_MAX);
    toy_put(t, header(t, 3, 40), 8, UINT64_MAX);
    test_time_limit(10); /* ends the test if a walk over the notes never does */
}

static void table_does_not_push_a_note_past_the_end_of_the_file(void **state)
{
    struct fixture *f = *state;

    new_toy(f);
    wrap_note(&f->toy, f->toy.note);
    make_checked_copy(f, &longer);
    assert_int_equal(f->out[56], TOY_PHDRS); /* the note gave up its entry */
}

static void table_does_not_grow_over_a_note_past_the_end_of_the_file(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    new_toy_with_gap(f);
    toy_put(t, header(t, 3, 0), 4, PT_NOTE);
    wrap_note(t, header(t, TOY_PHDRS, 8)); /* in the gap */
    make_checked_copy(f, &longer);
    assert_int_equal(f->out[56], TOY_PHDRS);
}

static void table_does_not_grow_over_a_segment_past_the_address_space(void **state)
{
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;

    new_toy_with_gap(f);
    toy_put(t, header(t, 3, 8), 8, header(t, TOY_PHDRS, 0));
    toy_put(t, header(t, 3, 16), 8, header(t, TOY_PHDRS, 0));
    toy_put(t, header(t, 3, 32), 8, UINT64_MAX);
    toy_put(t, header(t, 3, 40), 8, UINT64_MAX);
    assert_refused(f, &longer, EXTI_E_NOSPACE, t->phdr, no_room);
}

/* llvm-strip needs the header of a segment before those of the segments inside it. */
static void moved_dynamic_section_goes_behind_its_segment(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .id = "x", .needed = one_more,
                                                  .needed_count = 1};
    struct fixture *f = *state;
    struct elf_toy *t = &f->toy;
    uint8_t first[PHDR];

    new_toy(f);
    while (toy_get(t, t->dyn + (t->dyn_slots - 2) * 16, 8) == DT_NULL)
        add_tag(t, DT_DEBUG, 0);
    memcpy(first, t->b + header(t, 2, 0), PHDR);
    memmove(t->b + header(t, 1, 0), t->b + header(t, 0, 0), 2 * PHDR);
    memcpy(t->b + header(t, 0, 0), first, PHDR);
    make_checked_copy(f, &opts);
    memcpy(t->b, f->out, sizeof t->b);
    assert_int_equal(toy_get(t, header(t, 0, 0), 4), PT_LOAD);
    assert_int_equal(toy_get(t, header(t, 1, 0), 4), PT_LOAD);
    assert_int_equal(toy_get(t, header(t, 2, 0), 4), PT_LOAD);
    assert_int_equal(toy_get(t, header(t, 3, 0), 4), PT_DYNAMIC);
    assert_true(toy_get(t, header(t, 2, 4), 4) & PF_W);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        plan_test(table_grows_into_an_unused_gap_only),
        plan_test(table_does_not_grow_over_a_hash_table_alone),
        plan_test(pushed_notes_keep_their_alignment),
        plan_test(table_does_not_push_a_note_past_the_end_of_the_file),
        plan_test(table_does_not_grow_over_a_note_past_the_end_of_the_file),
        plan_test(table_does_not_grow_over_a_segment_past_the_address_space),
        plan_test(moved_dynamic_section_goes_behind_its_segment),
    };

    return cmocka_run_group_tests_name("elf/elf_slot", tests, NULL, NULL);
}
