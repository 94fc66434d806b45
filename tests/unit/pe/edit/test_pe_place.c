#include "tests/unit/pe/pe_copy.h"

/* Asserts that the last section is an added one. */
static void assert_added(const struct copy_fixture *f, uint64_t raw_offset)
{
    const struct pe_toy *t = &f->toy;
    const struct pe_section *s = &f->file.sections[PTOY_SECTIONS];

    assert_int_equal(f->file.section_count, PTOY_SECTIONS + 1);
    assert_string_equal(s->name, ".extiso");
    assert_int_equal(s->characteristics, 0x40000040);
    assert_int_equal(s->rva, ptoy_get(t, t->optional + 56, 4));
    assert_int_equal(s->virtual_size, sizeof LONGER);
    assert_int_equal(s->raw_size, 0x200);
    assert_int_equal(s->raw_offset, raw_offset);
    assert_int_equal(f->file.size_of_image, s->rva + 0x1000);
    assert_string_equal((char *)f->bytes + s->raw_offset, LONGER);
    assert_int_equal(f->n, s->raw_offset + s->raw_size);
}

static uint32_t field(const struct copy_fixture *f, uint64_t at)
{
    const uint8_t *p = f->bytes + at;

    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* A file without exports, whose import gets a longer name. */
static void make_importer(struct copy_fixture *f, struct pe_toy_opts o)
{
    f->opts.needed_count = 0;
    copy_replace(f, "python311.dll", LONGER);
    pe_toy_make(&f->toy, o);
    ptoy_put(&f->toy, ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_EXPORT), 8, 0);
}

static void names_go_first_into_the_slack_of_the_directory_s_section(void **state)
{
    struct copy_fixture *f = *state;
    const struct pe_toy *t = &f->toy;
    const struct pe_section *s;

    make_importer(f, (struct pe_toy_opts){0});
    copy_make(f);
    s = &f->file.sections[PTOY_RDATA];
    assert_int_equal(f->n, t->n);
    assert_int_equal(s->virtual_size, t->virtual_size[PTOY_RDATA] + sizeof LONGER);
    assert_string_equal((char *)f->bytes + t->start[PTOY_RDATA] + t->virtual_size[PTOY_RDATA],
                        LONGER);
    assert_memory_equal(f->bytes + t->name[0], "python311.dll", 14);
    assert_int_equal(f->file.section_count, PTOY_SECTIONS);
}

/* GNU ld puts imports into a writable section. */
static void the_directory_may_be_in_a_writable_section(void **state)
{
    struct copy_fixture *f = *state;

    make_importer(f, (struct pe_toy_opts){0});
    ptoy_put(&f->toy, ptoy_section(&f->toy, PTOY_RDATA) + 36, 4, 0xc0000040);
    copy_make(f);
    assert_int_equal(f->file.section_count, PTOY_SECTIONS);
}

static void names_go_next_into_another_readable_section(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    make_importer(f, (struct pe_toy_opts){0});
    fill_section(t, PTOY_RDATA);
    ptoy_put(t, ptoy_section(t, PTOY_RELOC) + 36, 4, 0x40000040);
    copy_make(f);
    assert_int_equal(f->file.section_count, PTOY_SECTIONS);
    assert_int_equal(f->file.sections[PTOY_RELOC].virtual_size,
                     t->virtual_size[PTOY_RELOC] + sizeof LONGER);
}

/* Discardable, shared and code sections. */
static void unsuitable_sections_are_skipped(void **state)
{
    static const uint32_t unfit[] = {0x42000040, 0x50000040, 0x60000040, 0x40000080, 0x00000040};
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    for (size_t i = 0; i < ARRAY_SIZE(unfit); i++) {
        make_importer(f, (struct pe_toy_opts){0});
        ptoy_put(t, ptoy_section(t, PTOY_RDATA) + 36, 4, unfit[i]);
        copy_make(f);
        assert_added(f, t->n);
    }
    /* A section with zeros beyond its bytes in the file. */
    make_importer(f, (struct pe_toy_opts){0});
    ptoy_put(t, ptoy_section(t, PTOY_RDATA) + 8, 4, 0xf00);
    copy_make(f);
    assert_added(f, t->n);
}

static void a_section_is_added(void **state)
{
    struct copy_fixture *f = *state;
    const struct pe_toy *t = &f->toy;

    make_importer(f, (struct pe_toy_opts){.full = true, .room = 40, .checksum = true});
    copy_make(f);
    assert_added(f, t->n);
    assert_int_equal(f->file.nt_at, t->nt);
    assert_int_equal(field(f, t->optional + 8), 0x200);

    make_importer(f, (struct pe_toy_opts){.full = true, .symbols = true, .certified = true});
    copy_make(f);
    assert_added(f, 0x1000);
    assert_int_equal(f->file.symbols_at, t->symbols);
    assert_memory_equal(f->bytes + t->symbols, t->b + t->symbols, t->certificates - t->symbols);
    for (size_t i = t->certificates; i < 0x1000; i++)
        assert_int_equal(f->bytes[i], 0);
}

/* The bound import directory is removed first, so its place is free. */
static void bound_imports_make_room(void **state)
{
    struct copy_fixture *f = *state;

    make_importer(f, (struct pe_toy_opts){.full = true, .bound = true, .room = 64});
    copy_make(f);
    assert_added(f, f->toy.n);
    assert_int_equal(f->file.nt_at, f->toy.nt);
}

static void headers_slide_over_the_dos_program(void **state)
{
    struct copy_fixture *f = *state;
    const struct pe_toy *t = &f->toy;

    for (size_t room = 4; room < 40; room += 16) {
        make_importer(f, (struct pe_toy_opts){.full = true, .checksum = true, .room = room});
        copy_make(f);
        assert_added(f, t->n);
        assert_int_equal(f->file.nt_at, DOS_HEADER_SIZE);
        assert_memory_equal(f->bytes, t->b, DOS_E_LFANEW);
        assert_int_equal(f->file.size_of_headers, t->headers_end);
        assert_memory_equal(f->bytes + DOS_HEADER_SIZE, t->b + t->nt, 6);
        assert_memory_equal(f->bytes + f->file.sections_at, t->b + t->sections,
                            PTOY_SECTIONS * SECTION_HEADER_SIZE);
        for (uint64_t i = f->file.sections_at + 5 * SECTION_HEADER_SIZE; i < t->headers_end; i++)
            assert_int_equal(f->bytes[i], 0);
    }
    /* Unknown bytes behind the section table are unchanged. */
    make_importer(f, (struct pe_toy_opts){.full = true, .room = 80});
    ptoy_put(&f->toy, t->sections + PTOY_SECTIONS * SECTION_HEADER_SIZE + 8, 4, 0x12345678);
    copy_make(f);
    assert_int_equal(f->file.nt_at, DOS_HEADER_SIZE);
    assert_int_equal(field(f, t->sections + PTOY_SECTIONS * SECTION_HEADER_SIZE + 8), 0x12345678);
}

static void headers_grow_and_sections_move(void **state)
{
    static const size_t rooms[] = {0, 8, 39};
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    for (size_t i = 0; i < ARRAY_SIZE(rooms); i++) {
        make_importer(f,
                      (struct pe_toy_opts){
                          .full = true, .symbols = i > 0, .certified = i > 1, .checksum = i < 2});
        tighten_headers(t, rooms[i]);
        if (i == 0)
            ptoy_put(t, t->optional + 64, 4, 0xffffffff); /* a wrong one */
        copy_make(f);
        assert_added(f, i ? 0x1200 : t->n + 0x200);
        assert_int_equal(f->file.nt_at, DOS_HEADER_SIZE);
        assert_int_equal(f->file.size_of_headers, 0x600);
        for (size_t k = 0; k < PTOY_SECTIONS; k++) {
            assert_int_equal(f->file.sections[k].raw_offset, t->start[k] + 0x200);
            assert_int_equal(f->file.sections[k].rva, t->rva[k]);
        }
        assert_int_equal(field(f, t->debug + 0x200 + 24), 0);
        assert_int_equal(field(f, t->debug + 0x200 + 28 + 24), t->codeview + 0x200);
        assert_int_equal(f->file.symbols_at, i ? t->symbols + 0x200 : 0);
        if (i)
            assert_memory_equal(f->bytes + t->symbols + 0x200, t->b + t->symbols, 2 * 18 + 4);
    }
}

/* Import descriptors may be the first bytes to move. */
static void descriptors_behind_the_headers_move(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    make_importer(f, (struct pe_toy_opts){.full = true});
    tighten_headers(t, 0);
    memcpy(t->b + t->start[PTOY_TEXT], t->b + t->imports, 60);
    ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_IMPORT), 4, t->rva[PTOY_TEXT]);
    copy_make(f);
    assert_added(f, t->n + 0x200);
    assert_string_equal(copy_names(f), LONGER " KERNEL32.dll delay WS2_32.dll | - | ");
}

/* Tight headers with something in their remaining room. */
static void make_tight(struct copy_fixture *f, struct pe_toy_opts o)
{
    o.full = true;
    make_importer(f, o);
    tighten_headers(&f->toy, 16);
    ptoy_put(&f->toy, f->toy.headers_end - 4, 4, 0x12345678);
}

static void the_last_section_is_extended(void **state)
{
    struct copy_fixture *f = *state;
    const struct pe_toy *t = &f->toy;
    const struct pe_section *s;

    make_tight(f, (struct pe_toy_opts){.checksum = true});
    ptoy_put(&f->toy, t->optional + 64, 4, 1);
    copy_make(f);
    assert_int_equal(f->file.section_count, PTOY_SECTIONS);
    s = &f->file.sections[PTOY_RELOC];
    assert_int_equal(s->raw_size, 0x400);
    assert_int_equal(s->virtual_size, 0x200 + sizeof LONGER);
    assert_int_equal(s->characteristics, 0x40000040);
    assert_string_equal((char *)f->bytes + s->raw_offset + 0x200, LONGER);
    assert_int_equal(f->n, t->n + 0x200);
    assert_int_equal(f->file.size_of_image, ptoy_get(t, t->optional + 56, 4));

    make_tight(f, (struct pe_toy_opts){.certified = true});
    copy_make(f);
    assert_int_equal(f->n, t->certificates + 0x200);
}

static void headers_grow_no_further_than_the_first_section(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    make_importer(f, (struct pe_toy_opts){.full = true});
    tighten_headers(t, 0);
    ptoy_put(t, t->optional + 36, 4, 0x200);
    for (size_t i = 0; i < PTOY_SECTIONS; i++)
        ptoy_put(t, ptoy_section(t, i) + 12, 4, 0x1000 * (i + 1));
    copy_make(f);
    assert_int_equal(f->file.size_of_headers, 0x600);
}

static void a_full_file_is_refused(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    make_tight(f, (struct pe_toy_opts){.symbols = true});
    assert_refused(f, EXTI_E_NOSPACE, ANY_OFFSET, "the headers have 12 of 40 bytes");
    make_tight(f, (struct pe_toy_opts){0});
    ptoy_put(t, ptoy_section(t, PTOY_RELOC) + 36, 4, 0x60000060);
    assert_refused(f, EXTI_E_NOSPACE, ANY_OFFSET, "the last section (.reloc)");

    /* Unknown overlays may be found by their file offset. */
    make_importer(f, (struct pe_toy_opts){.full = true});
    tighten_headers(t, 0);
    ptoy_add(t, 8, 0x0807060504034b50);
    assert_refused(f, EXTI_E_NOSPACE, ANY_OFFSET, "the headers have 0 of 40 bytes");
    make_importer(f, (struct pe_toy_opts){.full = true, .symbols = true});
    tighten_headers(t, 0);
    ptoy_add(t, 8, 0x0807060504034b50);
    assert_refused(f, EXTI_E_NOSPACE, ANY_OFFSET, "the headers have 0 of 40 bytes");
}

/* Relative addresses in code reach 2 gigabytes. */
static void an_image_of_2_gigabytes_is_refused(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    make_importer(f, (struct pe_toy_opts){.full = true});
    ptoy_put(t, ptoy_section(t, PTOY_RELOC) + 8, 4, 0x7fffffff - t->rva[PTOY_RELOC]);
    ptoy_put(t, t->optional + 56, 4, 0x80000000u);
    assert_refused(f, EXTI_E_NOSPACE, t->optional + 56, "SizeOfImage would be 0x80001000");
}

/* Makes a copy of the copy. */
static void rewrite_again(struct copy_fixture *f)
{
    struct pe_toy *t = &f->toy;

    assert_true(f->n <= sizeof t->b);
    memcpy(t->b, f->bytes, f->n);
    t->n = f->n;
}

static void an_added_section_is_reused(void **state)
{
    struct copy_fixture *f = *state;
    char longest[3][200];

    make_importer(f, (struct pe_toy_opts){.full = true, .checksum = true});
    copy_make(f);
    assert_added(f, f->toy.n);
    rewrite_again(f);

    /* Its remaining room takes another name. */
    copy_replace(f, "KERNEL32", "KERNEL32-another.dll");
    copy_make(f);
    assert_int_equal(f->file.section_count, PTOY_SECTIONS + 1);
    assert_int_equal(f->n, f->toy.n);
    rewrite_again(f);

    /* Then it grows. */
    for (size_t i = 0; i < 3; i++) {
        memset(longest[i], (int)('a' + i), sizeof longest[i]);
        longest[i][sizeof longest[i] - 1] = 0;
    }
    f->opts.needed_count = 0;
    copy_replace(f, LONGER, longest[0]);
    copy_replace(f, "KERNEL32-another", longest[1]);
    copy_replace(f, "WS2_32", longest[2]);
    copy_make(f);
    assert_int_equal(f->file.section_count, PTOY_SECTIONS + 1);
    assert_int_equal(f->file.sections[PTOY_SECTIONS].raw_size, 0x600);
    assert_int_equal(f->n, f->toy.n + 0x400);
    assert_non_null(strstr(copy_names(f), longest[2]));
}

static void delay_imports_by_address_get_addresses(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    pe_toy_make(t, (struct pe_toy_opts){.narrow = true, .by_address = true});
    copy_replace(f, "ws2_32", LONGER);
    copy_make(f);
    assert_string_equal(copy_names(f), "python311.dll KERNEL32.dll delay " LONGER
                                       " | toy.pyd | " OWN_EXPORTS("python311"));
    assert_int_equal(field(f, t->delay + 4),
                     t->base + t->rva[PTOY_RDATA] + t->virtual_size[PTOY_RDATA]);
}

static void every_allocation_of_a_section_may_fail(void **state)
{
    struct copy_fixture *f = *state;

    for (int kind = 0; kind < 4; kind++) {
        if (kind < 2)
            make_importer(f,
                          (struct pe_toy_opts){.full = true, .certified = kind, .checksum = true});
        else
            make_tight(f, (struct pe_toy_opts){.checksum = true});
        if (kind == 3)
            ptoy_put(&f->toy, f->toy.headers_end - 4, 4, 0);
        for (long n = 0;; n++) {
            int rc;

            copy_reset(f);
            exti__mem_fail_after(n);
            rc = plan_of(f, exti__span(f->toy.b, f->toy.n), &f->plan);
            exti__mem_fail_after(-1);
            if (!rc)
                break;
            assert_exti(rc, EXTI_E_NOMEM, &f->err, EXTI_NO_OFFSET);
            assert_true(n < 200);
        }
        copy_apply(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        copy_test(names_go_first_into_the_slack_of_the_directory_s_section),
        copy_test(the_directory_may_be_in_a_writable_section),
        copy_test(names_go_next_into_another_readable_section),
        copy_test(unsuitable_sections_are_skipped),
        copy_test(a_section_is_added),
        copy_test(bound_imports_make_room),
        copy_test(headers_slide_over_the_dos_program),
        copy_test(headers_grow_and_sections_move),
        copy_test(descriptors_behind_the_headers_move),
        copy_test(the_last_section_is_extended),
        copy_test(headers_grow_no_further_than_the_first_section),
        copy_test(a_full_file_is_refused),
        copy_test(an_image_of_2_gigabytes_is_refused),
        copy_test(an_added_section_is_reused),
        copy_test(delay_imports_by_address_get_addresses),
        copy_test(every_allocation_of_a_section_may_fail),
    };

    return cmocka_run_group_tests_name("pe/pe_place", tests, NULL, NULL);
}
