#include "tests/unit/pe/pe_faults.h"

#include "pe/read/pe_export.h"

struct seen {
    struct pe_export list[16];
    size_t count;
    int stop;
};

static int list_one_export(void *user, const struct pe_export *e, struct exti_error *err)
{
    struct seen *s = user;

    (void)err;
    if (s->count < ARRAY_SIZE(s->list))
        s->list[s->count] = *e;
    s->count++;
    return s->stop;
}

static int list_exports(struct pe_fixture *f, struct pe_exports *x, struct seen *s)
{
    int rc = exti__pe_exports_open(&f->file, x, &f->err);

    return rc ? rc : exti__pe_exports(&f->file, x, list_one_export, s, &f->err);
}

static int attempt(struct pe_fixture *f)
{
    struct seen s = {.count = 0};
    struct pe_exports x;

    assert_ok(pe_open_toy(f), &f->err);
    return list_exports(f, &x, &s);
}

static void assert_export(const struct pe_export *e, const char *name, uint32_t ordinal,
                          uint32_t rva, const char *forwarder, size_t slot_at)
{
    if (name)
        assert_string_equal(e->name, name);
    else
        assert_null(e->name);
    assert_int_equal(e->ordinal, ordinal);
    assert_int_equal(e->rva, rva);
    if (forwarder)
        assert_string_equal(e->forwarder, forwarder);
    else
        assert_null(e->forwarder);
    assert_int_equal(e->slot_at, slot_at);
}

static void every_export_is_found_by_ordinal(void **state)
{
    static const struct pe_toy_opts kinds[] = {
        {0}, {.narrow = true}, {.arm = true}, {.low = true}, {.full = true}};
    struct pe_fixture *f = *state;
    const struct pe_toy *t = &f->toy;

    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        struct seen s = {.count = 0};
        struct pe_exports x;

        pe_make(f, kinds[i]);
        assert_ok(list_exports(f, &x, &s), &f->err);
        assert_true(x.present);
        assert_string_equal(x.dll, PTOY_ID);
        assert_int_equal(x.at, t->exports);
        assert_int_equal(x.name_at, t->exports + 12);
        assert_int_equal(x.rva, ptoy_rva(t, t->exports));
        assert_int_equal(x.size, t->export_end - t->exports);
        assert_int_equal(x.base, PTOY_ORDINAL_BASE);
        assert_int_equal(x.function_count, PTOY_FUNCTIONS);
        assert_int_equal(x.name_count, PTOY_NAMES);
        assert_int_equal(x.functions_rva, ptoy_rva(t, t->functions));
        assert_int_equal(x.names_rva, ptoy_rva(t, t->names));
        assert_int_equal(x.ordinals_rva, ptoy_rva(t, t->ordinals));
        assert_int_equal(s.count, 5);
        assert_export(&s.list[0], "PyInit_toy", 5, t->rva[PTOY_TEXT] + 16, NULL, t->functions);
        assert_export(&s.list[1], "toy_alias", 5, t->rva[PTOY_TEXT] + 16, NULL, t->functions);
        assert_export(&s.list[2], "toy_state", 7, t->rva[PTOY_DATA] + 64, NULL, t->functions + 8);
        assert_export(&s.list[3], NULL, 8, t->rva[PTOY_TEXT] + 32, NULL, t->functions + 12);
        assert_export(&s.list[4], "toy_forward", 9, ptoy_rva(t, t->forwarder),
                      "python311.PyLong_Type", t->functions + 16);
    }
}

static void a_file_of_forwarders_is_read(void **state)
{
    static const char *const names[] = {"PyA", "PyB", "PyC", NULL};
    struct pe_fixture *f = *state;
    struct seen s = {.count = 0};
    struct pe_exports x;

    pe_make(f, (struct pe_toy_opts){.id = "python3.dll", .exports = names, .forward = "python311"});
    assert_ok(list_exports(f, &x, &s), &f->err);
    assert_string_equal(x.dll, "python3.dll");
    assert_int_equal(s.count, 3);
    assert_string_equal(s.list[2].name, "PyC");
    assert_string_equal(s.list[2].forwarder, "python311.PyC");
}

static void no_directory_means_no_exports(void **state)
{
    struct pe_fixture *f = *state;
    struct seen s = {.count = 0};
    struct pe_exports x;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    ptoy_put(&f->toy, ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_EXPORT), 4, 0);
    assert_ok(pe_open_toy(f), &f->err);
    assert_ok(list_exports(f, &x, &s), &f->err);
    assert_false(x.present);
    assert_null(x.dll);
    assert_int_equal(s.count, 0);
}

static void empty_tables_may_be_anywhere(void **state)
{
    struct pe_fixture *f = *state;
    struct seen s = {.count = 0};
    struct pe_exports x;

    pe_make(f, (struct pe_toy_opts){0});
    ptoy_put(&f->toy, f->toy.exports + 12, 4, 0); /* and a DLL may be without a name */
    ptoy_put(&f->toy, f->toy.exports + 16, 4, 0xffffffff);
    ptoy_put(&f->toy, f->toy.exports + 20, 8, 0);
    memset(f->toy.b + f->toy.exports + 28, 0xff, 12);
    assert_ok(list_exports(f, &x, &s), &f->err);
    assert_true(x.present);
    assert_null(x.dll);
    assert_int_equal(s.count, 0);
}

static void corrupt_exports_are_rejected(void **state)
{
    struct pe_fixture *f = *state;
    const struct pe_toy *t = &f->toy;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    const size_t directory = ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_EXPORT), at = t->exports;
    const struct pe_fault faults[] = {
        {"export directory: RVA 0x2700 is in section .data, past its bytes", directory, 4, 0x2700,
         EXTI_E_FORMAT, directory},
        {"export directory: needs 40 bytes, 20 left", directory, 4, 0x33ec, EXTI_E_FORMAT,
         t->start[PTOY_RDATA] + 0x3ec},
        {"export directory: its size is 39, less than 40", directory + 4, 4, 39, EXTI_E_FORMAT,
         directory + 4},
        {"exported DLL name: RVA 0x5000 is in no section", at + 12, 4, 0x5000, EXTI_E_FORMAT,
         at + 12},
        {"export directory: Base is 65532, which gives 5 functions", at + 16, 4, 65532,
         EXTI_E_FORMAT, at + 16},
        {"NumberOfFunctions is 65537, more than 65536", at + 20, 4, 65537, EXTI_E_FORMAT, at + 20},
        {"export address table: needs 40000 bytes", at + 20, 4, 10000, EXTI_E_FORMAT, t->functions},
        {"NumberOfNames is 65537, more than 65536", at + 24, 4, 65537, EXTI_E_FORMAT, at + 24},
        {"export name table: needs 40000 bytes", at + 24, 4, 10000, EXTI_E_FORMAT, t->names},
        {"export address table: RVA 0x5000", at + 28, 4, 0x5000, EXTI_E_FORMAT, at + 28},
        {"export name table: RVA 0x5000", at + 32, 4, 0x5000, EXTI_E_FORMAT, at + 32},
        {"export ordinal table: RVA 0x2700", at + 36, 4, 0x2700, EXTI_E_FORMAT, at + 36},
        {"exported symbol: RVA 0x400 is in no section", t->names, 4, 0x400, EXTI_E_FORMAT,
         t->names},
        {"exported symbol: RVA 0x5000 is in no section", t->names + 8, 4, 0x5000, EXTI_E_FORMAT,
         t->names + 8},
        {"export ordinal table: entry 1 is 5, but there are 5 functions", t->ordinals + 2, 2, 5,
         EXTI_E_FORMAT, t->ordinals + 2},
        {"forwarder of ordinal 9: its text is not of the form DLL.symbol", t->forwarder + 9, 1, '_',
         EXTI_E_FORMAT, t->functions + 16},
        {"forwarder of ordinal 9", t->forwarder + 10, 1, 0, EXTI_E_FORMAT, t->functions + 16},
        {"forwarder of ordinal 9", t->forwarder, 3, '.' | 'x' << 8, EXTI_E_FORMAT,
         t->functions + 16},
    };

    assert_faults(f, (struct pe_toy_opts){0}, faults, ARRAY_SIZE(faults), attempt);
}

static void long_export_names_are_rejected(void **state)
{
    struct pe_fixture *f = *state;
    size_t header, start, rva;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    header = ptoy_section(&f->toy, PTOY_RELOC);
    start = f->toy.start[PTOY_RELOC];
    rva = f->toy.rva[PTOY_RELOC];
    ptoy_put(&f->toy, header + 8, 4, 0x8000);
    ptoy_put(&f->toy, header + 16, 4, 0x8000);
    ptoy_put(&f->toy, f->toy.optional + 56, 4, rva + 0x8000);
    f->toy.n = start + 0x8000;
    memset(f->toy.b + start, 'x', 0x4000);
    f->toy.b[start + 0x4000] = 0;
    ptoy_put(&f->toy, f->toy.names, 4, rva);
    assert_ok(attempt(f), &f->err);
    f->toy.b[start + 0x4000] = 'x';
    assert_exti(attempt(f), EXTI_E_FORMAT, &f->err, start);
    assert_says(&f->err, "exported symbol: string is longer than 16384 bytes");
    ptoy_put(&f->toy, f->toy.names, 4, rva + 0x5000);
    ptoy_put(&f->toy, f->toy.exports + 12, 4, rva + 0x4001 - 255);
    assert_ok(attempt(f), &f->err);
    ptoy_put(&f->toy, f->toy.exports + 12, 4, rva + 0x4001 - 256);
    assert_exti(attempt(f), EXTI_E_FORMAT, &f->err, start + 0x4001 - 256);
    assert_says(&f->err, "exported DLL name: string is longer than 255 bytes");
    pe_toy_make(&f->toy, (struct pe_toy_opts){.full = true});
    memset(f->toy.b + f->toy.forwarder, 'x', f->toy.start[PTOY_RELOC] - f->toy.forwarder);
    assert_exti(attempt(f), EXTI_E_FORMAT, &f->err, f->toy.forwarder);
    assert_says(&f->err, "forwarder: string has no end");
}

static void the_callback_s_result_is_returned(void **state)
{
    struct pe_fixture *f = *state;
    struct seen s = {.stop = 17};
    struct pe_exports x;

    pe_make(f, (struct pe_toy_opts){0});
    assert_int_equal(list_exports(f, &x, &s), 17);
    assert_int_equal(s.count, 1);
}

static void every_failed_allocation_is_reported(void **state)
{
    struct pe_fixture *f = *state;

    pe_make(f, (struct pe_toy_opts){0});
    for (int n = 0;; n++) {
        struct seen s = {.count = 0};
        struct pe_exports x;
        int rc;

        exti__mem_fail_after(n);
        rc = list_exports(f, &x, &s);
        exti__mem_fail_after(-1);
        if (!rc) {
            assert_int_equal(n, 2);
            break;
        }
        assert_exti(rc, EXTI_E_NOMEM, &f->err, ANY_OFFSET);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pe_test(every_export_is_found_by_ordinal),  pe_test(a_file_of_forwarders_is_read),
        pe_test(no_directory_means_no_exports),     pe_test(empty_tables_may_be_anywhere),
        pe_test(corrupt_exports_are_rejected),      pe_test(long_export_names_are_rejected),
        pe_test(the_callback_s_result_is_returned), pe_test(every_failed_allocation_is_reported),
    };

    return cmocka_run_group_tests_name("pe/pe_export", tests, NULL, NULL);
}
