/* Copies of a copy whose block of tables was laid out anew: what else has changed is reported. */
#include "tests/unit/elf/edit/elf_toy_plan.h"

static const struct exti_rewrite_opts again = {OPTS, .id = "another-name-that-is-not-there.so"};

/* More than the free slots of PT_DYNAMIC, which therefore moves. */
static const struct exti_needed libraries[] = {{NULL, "libone.so", EXTI_NEEDED_LAST},
                                               {NULL, "libtwo.so", EXTI_NEEDED_LAST},
                                               {NULL, "libthree.so", EXTI_NEEDED_LAST},
                                               {NULL, "libfour.so", EXTI_NEEDED_LAST}};
static const struct exti_rewrite_opts four_more = {OPTS, .needed = libraries, .needed_count = 4};

static uint64_t get(const uint8_t *file, size_t at)
{
    uint64_t v;

    memcpy(&v, file + at, sizeof v);
    return v;
}

static void put(uint8_t *file, size_t at, uint64_t v)
{
    memcpy(file + at, &v, sizeof v);
}

/* The offset of the last program header of that type. */
static size_t header_of(const uint8_t *file, uint32_t type)
{
    for (size_t i = file[56]; i-- > 0;)
        if (file[64 + i * PHDR] == type)
            return 64 + i * PHDR;
    fail_msg("no program header of type %u", type);
    return 0;
}

/* `in` is a copy with a block, `out` a copy of that with a larger one. */
static void make_copies(struct fixture *f, const struct exti_rewrite_opts *opts)
{
    new_toy(f);
    make_checked_copy(f, &longer);
    memcpy(f->in, f->out, f->out_n);
    f->in_n = f->out_n;
    make_checked_copy(f, opts);
    assert_int_equal(get(f->in, header_of(f->in, PT_LOAD) + 8),
                     get(f->out, header_of(f->out, PT_LOAD) + 8));
    assert_true(f->out_n > f->in_n);
}

static void assert_finds(struct fixture *f, const struct exti_rewrite_opts *opts, uint64_t offset,
                         const char *says)
{
    const struct exti_request req = {.opts = opts};

    f->finding = (struct exti_error){0};
    assert_ok(exti__elf_format.check(exti__span(f->in, f->in_n), exti__span(f->out, f->out_n), &req,
                                     NULL, record_finding, &f->finding, &f->err),
              &f->err);
    assert_contains(f->finding.message, says);
    assert_int_equal(f->finding.offset, offset);
}

/* The original's name is still in the table, and nothing refers to it. */
static void changed_string_of_a_moved_table_is_reported(void **state)
{
    struct fixture *f = *state;
    size_t strings;

    make_copies(f, &four_more);
    strings = get(f->out, f->toy.shdr + 2 * SHDR + 24);
    assert_true(strings > get(f->in, f->toy.shdr + 2 * SHDR + 24));
    f->out[strings + TOY_SONAME]++;
    assert_finds(f, &four_more, strings + TOY_SONAME,
                 "DT_STRTAB + 0x1: byte 0x6d, not 0x6c, in no string that an edit replaces");
}

static void changed_flags_of_a_block_are_reported(void **state)
{
    struct fixture *f = *state;
    size_t at;

    make_copies(f, &again);
    at = header_of(f->out, PT_LOAD);
    f->out[at + 4] |= PF_W; /* PT_DYNAMIC is not there */
    assert_finds(f, &again, at, "flags 6, not ");
    f->out[at + 4] = PF_R | PF_X;
    assert_finds(f, &again, at, "flags 5, not ");
}

static void swap_headers(uint8_t *file, size_t a, size_t b)
{
    uint8_t keep[PHDR];

    memcpy(keep, file + a, PHDR);
    memcpy(file + a, file + b, PHDR);
    memcpy(file + b, keep, PHDR);
}

static void dynamic_section_moved_before_its_block_is_reported(void **state)
{
    struct fixture *f = *state;
    size_t load, dynamic;

    make_copies(f, &four_more);
    load = header_of(f->out, PT_LOAD);
    dynamic = header_of(f->out, PT_DYNAMIC);
    assert_int_equal(get(f->out, load + 8), get(f->out, dynamic + 8));
    swap_headers(f->out, load, dynamic);
    assert_finds(f, &four_more, load, "comes before its new PT_LOAD");
    swap_headers(f->out, load, dynamic);
    f->out[load + 4] = PF_R;
    assert_finds(f, &four_more, load, "not writable like the PT_DYNAMIC in it");
}

static void grow(uint8_t *file, size_t *n, uint8_t with)
{
    const size_t load = header_of(file, PT_LOAD);

    memset(file + *n, with, 8);
    *n += 8;
    put(file, load + 32, get(file, load + 32) + 8);
    put(file, load + 40, get(file, load + 40) + 8);
}

/* The last PT_LOAD has bytes in no table, which the copy must keep though it has grown. */
static void changed_byte_of_what_is_no_block_is_reported(void **state)
{
    static const struct exti_rewrite_opts none = {OPTS};
    struct fixture *f = *state;
    size_t at;

    make_copies(f, &again);
    at = f->in_n;
    grow(f->in, &f->in_n, 0x11);
    memcpy(f->out, f->in, f->in_n);
    f->out_n = f->in_n;
    grow(f->out, &f->out_n, 0);
    f->out[at + 2]++;
    assert_finds(f, &none, at + 2, "PT_LOAD: byte 0x12, not 0x11");
}

/* A section of other contents shares bytes with a table that makes room in the copy. */
static void block_with_another_section_is_none(void **state)
{
    struct fixture *f = *state;
    uint64_t block;

    make_copies(f, &four_more);
    block = get(f->in, header_of(f->in, PT_LOAD) + 8);
    for (int i = 0; i < 2; i++) {
        uint8_t *sh = (i ? f->out : f->in) + f->toy.shdr + 4 * SHDR;

        sh[4] = SHT_PROGBITS;
        put(sh, 24, block);
        put(sh, 32, 8);
    }
    assert_finds(f, &four_more, header_of(f->out, PT_LOAD), "flags 6, not ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        plan_test(changed_string_of_a_moved_table_is_reported),
        plan_test(changed_flags_of_a_block_are_reported),
        plan_test(dynamic_section_moved_before_its_block_is_reported),
        plan_test(changed_byte_of_what_is_no_block_is_reported),
        plan_test(block_with_another_section_is_none),
    };

    return cmocka_run_group_tests_name("elf/elf_check_block", tests, NULL, NULL);
}
