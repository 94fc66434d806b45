/* Copies of copies: an edit lays out the block of the one before. */
#include "tests/unit/elf/edit/elf_toy_plan.h"

/* The program header of the last PT_LOAD in `in`. */
static uint8_t *last_load(struct fixture *f)
{
    uint8_t *last = NULL;

    for (size_t i = 0; i < f->in[56]; i++)
        if (f->in[64 + i * PHDR] == PT_LOAD)
            last = f->in + 64 + i * PHDR;
    assert_non_null(last);
    return last;
}

static uint64_t get(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return v;
}

static void put(uint8_t *p, uint64_t v)
{
    memcpy(p, &v, sizeof v);
}

static size_t count_loads(const uint8_t *file)
{
    size_t n = 0;

    for (size_t i = 0; i < file[56]; i++)
        n += file[64 + i * PHDR] == PT_LOAD;
    return n;
}

/* The copy is the next original. */
static void take_copy(struct fixture *f)
{
    memcpy(f->in, f->out, f->out_n);
    f->in_n = f->out_n;
}

/* A copy with a block of strings alone. */
static void new_copy(struct fixture *f)
{
    new_toy(f);
    make_checked_copy(f, &longer);
    take_copy(f);
}

static void copies_of_copies_have_one_block(void **state)
{
    struct fixture *f = *state;
    char id[128];
    const struct exti_rewrite_opts opts = {OPTS, .id = id};
    size_t loads, size;

    new_copy(f);
    loads = count_loads(f->in);
    for (int i = 0; i < 100; i++) {
        size = f->in_n;
        snprintf(id, sizeof id, "%03d-a-name-that-is-longer-each-time-%.*s", i, i % 30,
                 "..............................");
        make_checked_copy(f, &opts);
        assert_int_equal(count_loads(f->out), loads);
        assert_true(f->out_n - size <= strlen(id) + 1);
        assert_true(f->out_n >= size);
        take_copy(f);
    }
}

/* The table of entries moves into the block first, then grows there. */
static void block_takes_the_dynamic_section_in(void **state)
{
    struct fixture *f = *state;
    char name[32];
    const struct exti_needed more = {NULL, name, EXTI_NEEDED_LAST};
    const struct exti_rewrite_opts opts = {OPTS, .needed = &more, .needed_count = 1};
    size_t loads, dynamic;
    uint64_t at = 0;

    new_copy(f);
    loads = count_loads(f->in);
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "libmore-%d.so", i);
        make_checked_copy(f, &opts);
        assert_int_equal(count_loads(f->out), loads);
        take_copy(f);
    }
    for (dynamic = 64; f->in[dynamic] != PT_DYNAMIC;)
        dynamic += PHDR;
    at = get(f->in + dynamic + 8);
    assert_int_equal(at, get(last_load(f) + 8));
    assert_int_equal(f->in[dynamic + 4], PF_R | PF_W);
    assert_int_equal(last_load(f)[4], PF_R | PF_W);
    assert_true(f->in + dynamic > last_load(f));
}

typedef void (*change_fn)(struct fixture *f);

/* A block that has been changed like this is none: the edit needs another entry, as the first did,
 * of which this file has none left. */
static void assert_no_block(struct fixture *f, change_fn change)
{
    static const struct exti_rewrite_opts again = {OPTS, .id = "another-name-that-is-not-there"};
    size_t gap;

    new_toy_without_spare(f);
    memset(f->toy.b + f->toy.note, 0, f->toy.sym - f->toy.note);
    toy_put(&f->toy, tag_at(&f->toy, DT_HASH), 8, DT_DEBUG);
    toy_put(&f->toy, tag_at(&f->toy, DT_GNU_HASH), 8, DT_DEBUG);
    toy_put(&f->toy, f->toy.shdr + 4 * SHDR + 4, 4, SHT_NULL);
    make_checked_copy(f, &longer);
    take_copy(f);
    assert_int_equal(f->in[56], TOY_PHDRS + 1);
    gap = header(&f->toy, TOY_PHDRS + 1, 0);
    memset(f->in + gap, 1, f->toy.sym - gap); /* no room for one more */
    make_checked_copy(f, &again);
    change(f);
    assert_refused(f, &again, EXTI_E_NOSPACE, f->toy.phdr,
                   "program header table: no entry can be spared and no room is left behind it");
}

static void append_byte(struct fixture *f)
{
    f->in[f->in_n++] = 1;
}

static void add_zeros_to_memory(struct fixture *f)
{
    put(last_load(f) + 40, get(last_load(f) + 40) + 8);
}

static void allow_execution(struct fixture *f)
{
    last_load(f)[4] |= PF_X;
}

/* The strings end before the block does. */
static void append_to_block(struct fixture *f)
{
    put(last_load(f) + 32, get(last_load(f) + 32) + 8);
    put(last_load(f) + 40, get(last_load(f) + 40) + 8);
    f->in_n += 8;
}

/* The note of the original, whose entry is unused. */
static void put_segment_into_block(struct fixture *f)
{
    uint8_t *ph = f->in + header(&f->toy, 4, 0);

    put(ph + 8, get(last_load(f) + 8));
    put(ph + 16, get(last_load(f) + 16));
    put(ph + 32, 8);
    put(ph + 40, 8);
}

static void put_section_into_block(struct fixture *f)
{
    uint8_t *sh = f->in + f->toy.shdr + 4 * SHDR;

    sh[4] = SHT_PROGBITS;
    put(sh + 24, get(last_load(f) + 8));
    put(sh + 32, 8);
}

static void give_section_another_size(struct fixture *f)
{
    uint8_t *sh = f->in + f->toy.shdr + 2 * SHDR;

    put(sh + 32, get(sh + 32) - 1);
}

static void put_symbol_into_block(struct fixture *f)
{
    put(f->in + f->toy.sym + 2 * 24 + 8, get(last_load(f) + 16) + 8);
}

static void put_address_into_block(struct fixture *f)
{
    uint8_t *tag = f->in + tag_at(&f->toy, DT_DEBUG);

    put(tag, DT_FINI);
    put(tag + 8, get(last_load(f) + 16) + 8);
}

static void what_is_not_a_block_of_tables_alone_is_left(void **state)
{
    static const struct {
        const char *name;
        change_fn change;
    } changes[] = {{"bytes behind it", append_byte},
                   {"zeros in memory", add_zeros_to_memory},
                   {"code", allow_execution},
                   {"bytes in no table", append_to_block},
                   {"another segment", put_segment_into_block},
                   {"another section", put_section_into_block},
                   {"a section of another size", give_section_another_size},
                   {"a symbol", put_symbol_into_block},
                   {"an address", put_address_into_block}};

    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        print_message("%s\n", changes[i].name);
        assert_no_block(*state, changes[i].change);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        plan_test(copies_of_copies_have_one_block),
        plan_test(block_takes_the_dynamic_section_in),
        plan_test(what_is_not_a_block_of_tables_alone_is_left),
    };

    return cmocka_run_group_tests_name("elf/elf_block", tests, NULL, NULL);
}
