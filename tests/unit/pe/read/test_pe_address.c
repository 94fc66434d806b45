#include "tests/unit/pe/pe_faults.h"

#include "pe/read/pe_address.h"

static void addresses_lead_into_the_file(void **state)
{
    struct pe_fixture *f = *state;
    struct exti_span s;
    const char *name;

    pe_make(f, (struct pe_toy_opts){0});
    assert_ok(exti__pe_at(&f->file, 0x3000, 0x10, "it", &s, &f->err), &f->err);
    assert_int_equal(s.base, f->toy.start[PTOY_RDATA]);
    assert_int_equal(s.n, 0x10);
    assert_ok(exti__pe_from(&f->file, 0x11ff, "it", &s, &f->err), &f->err);
    assert_int_equal(s.base, 0x5ff);
    assert_int_equal(s.n, 1);
    assert_ok(exti__pe_from(&f->file, 0x3fc, "it", &s, &f->err), &f->err); /* the headers */
    assert_int_equal(s.base, 0x3fc);
    assert_int_equal(s.n, 4);
    assert_exti(exti__pe_at(&f->file, 0x11ff, 2, "it", &s, &f->err), EXTI_E_FORMAT, &f->err, 0x5ff);
    assert_says(&f->err, "it: needs 2 bytes, 1 left");
    assert_exti(exti__pe_at(&f->file, 0x1200, 1, "it", &s, &f->err), EXTI_E_FORMAT, &f->err,
                EXTI_NO_OFFSET);
    assert_says(&f->err, "it: RVA 0x1200 is in section .text, past its bytes in the file");
    assert_exti(exti__pe_at(&f->file, 0x400, 1, "it", &s, &f->err), EXTI_E_FORMAT, &f->err,
                EXTI_NO_OFFSET);
    assert_says(&f->err, "it: RVA 0x400 is in no section");
    assert_exti(exti__pe_at(&f->file, 0x5000, 0, "it", &s, &f->err), EXTI_E_FORMAT, &f->err,
                EXTI_NO_OFFSET);
    assert_int_equal(exti__pe_error_at(EXTI_E_FORMAT, 7, &f->err), EXTI_E_FORMAT);
    assert_int_equal(f->err.offset, 7);
    assert_int_equal(exti__pe_error_at(EXTI_E_FORMAT, 8, &f->err), EXTI_E_FORMAT);
    assert_int_equal(f->err.offset, 7);
    assert_int_equal(exti__pe_error_at(EXTI_E_FORMAT, 8, NULL), EXTI_E_FORMAT);
    assert_ptr_equal(exti__pe_section_of(&f->file, 0x2fff), &f->file.sections[PTOY_DATA]);
    assert_null(exti__pe_section_of(&f->file, 0xfff));
    assert_null(exti__pe_section_of(&f->file, 0x5000));
    assert_ok(
        exti__pe_string(&f->file, ptoy_rva(&f->toy, f->toy.name[0]), 13, "it", &name, &f->err),
        &f->err);
    assert_string_equal(name, "python311.dll");
    assert_exti(
        exti__pe_string(&f->file, ptoy_rva(&f->toy, f->toy.name[0]), 12, "it", &name, &f->err),
        EXTI_E_FORMAT, &f->err, f->toy.name[0]);
    assert_says(&f->err, "it: string is longer than 12 bytes");
    memset(f->toy.b + 0x5f0, 'x', 0x10);
    assert_exti(exti__pe_string(&f->file, 0x11f8, 100, "it", &name, &f->err), EXTI_E_FORMAT,
                &f->err, 0x5f8);
    assert_says(&f->err, "it: string has no end");
}

/* Bytes of the file past the section's last page in memory are not loaded. */
static void bytes_that_are_not_loaded_have_no_address(void **state)
{
    struct pe_fixture *f = *state;
    struct exti_span s;
    size_t reloc;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    reloc = ptoy_section(&f->toy, PTOY_RELOC);
    ptoy_put(&f->toy, reloc + 16, 4, 0x2000);
    f->toy.n += 0x1e00;
    assert_ok(pe_open_toy(f), &f->err);
    assert_ok(exti__pe_from(&f->file, f->toy.rva[PTOY_RELOC], "it", &s, &f->err), &f->err);
    assert_int_equal(s.n, 0x1000);
    assert_int_equal(f->file.raw_end, f->toy.n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pe_test(addresses_lead_into_the_file),
        pe_test(bytes_that_are_not_loaded_have_no_address),
    };

    return cmocka_run_group_tests_name("pe/pe_address", tests, NULL, NULL);
}
