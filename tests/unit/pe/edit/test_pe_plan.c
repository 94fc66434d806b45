#include "tests/unit/pe/pe_copy.h"

static const struct pe_toy_opts kinds[] = {
    {0},
    {.arm = true, .checksum = true},
    {.narrow = true},
    {.low = true},
    {.no_lookup = true},
    {.bound = true, .checksum = true},
    {.narrow = true, .by_address = true},
    {.symbols = true, .checksum = true},
    {.certified = true, .checksum = true},
    {.symbols = true, .certified = true},
    {.full = true},
    {.room = 40},
};

static void no_edits_give_an_empty_plan(void **state)
{
    struct copy_fixture *f = *state;

    f->opts.path_set = "x";
    f->opts.path_prepend = "y";
    f->opts.origin = "/z";
    f->opts.flags = EXTI_RW_SYMBOLIC;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        pe_toy_make(&f->toy, kinds[i]);
        assert_nothing_to_do(f, exti__span(f->toy.b, f->toy.n));
    }
    f->opts.id = PTOY_ID;
    copy_replace(f, "python311.dll", "python311.dll");
    copy_replace(f, "ws2_32", "WS2_32.dll");
    pe_toy_make(&f->toy, kinds[0]);
    assert_nothing_to_do(f, exti__span(f->toy.b, f->toy.n));
}

/* Names that are not longer overwrite the old ones, in every kind of file. */
static void names_of_the_same_length_are_set_in_place(void **state)
{
    struct copy_fixture *f = *state;
    const struct pe_toy *t = &f->toy;

    f->opts.id = "toy.dup";
    copy_replace(f, "PYTHON311", "k3x9q2m4f.dll");
    copy_replace(f, "ws2_32.DLL", "w.dll");
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        pe_toy_make(&f->toy, kinds[i]);
        copy_make(f);
        assert_string_equal(
            copy_names(f),
            "k3x9q2m4f.dll KERNEL32.dll delay w.dll | toy.dup | " OWN_EXPORTS("k3x9q2m4f"));
        assert_int_equal(f->n, kinds[i].certified ? t->certificates : t->n);
        assert_memory_equal(f->bytes + t->delay_name, "w.dll\0\0\0\0\0", 11);
        assert_memory_equal(f->bytes + t->sections, t->b + t->sections,
                            PTOY_SECTIONS * SECTION_HEADER_SIZE);
        assert_memory_equal(f->bytes + t->imports + 12, t->b + t->imports + 12, 4);
    }
}

static void longer_names_are_set_in_every_kind_of_file(void **state)
{
    struct copy_fixture *f = *state;

    f->opts.id = "toy-of-another-context.pyd";
    copy_replace(f, "python311.dll", LONGER);
    copy_replace(f, "WS2_32", "WS2_32-of-another-context.dll");
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        pe_toy_make(&f->toy, kinds[i]);
        if (kinds[i].low) {
            assert_refused(f, EXTI_E_UNSUPPORTED, f->toy.optional + 32, "less than a page");
            continue;
        }
        copy_make(f);
        assert_string_equal(copy_names(f), LONGER
                            " KERNEL32.dll delay WS2_32-of-another-context.dll | "
                            "toy-of-another-context.pyd | " OWN_EXPORTS("python311-context-4711"));
    }
}

static void a_copy_keeps_no_signature(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    copy_replace(f, "python311", "k3x9q2m4f.dll");
    for (int symbols = 0; symbols < 2; symbols++) {
        pe_toy_make(t, (struct pe_toy_opts){.certified = true, .symbols = symbols});
        ptoy_put(t, t->optional + 70, 2, 0x1e0);
        copy_make(f);
        assert_int_equal(f->n, t->certificates);
        assert_int_equal(f->file.directories[IMAGE_DIRECTORY_ENTRY_SECURITY].rva, 0);
        assert_int_equal(f->file.directories[IMAGE_DIRECTORY_ENTRY_SECURITY].size, 0);
        assert_int_equal(f->file.dll_characteristics, 0x160);
        assert_int_equal(f->file.dependent_load_flags, 0);
    }
    ptoy_add(t, 4, 0);
    assert_refused(f, EXTI_E_UNSUPPORTED, t->certificates + 0x48, "4 bytes follow it");
}

static void a_copy_has_no_bound_imports(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    copy_replace(f, "python311", "k3x9q2m4f.dll");
    pe_toy_make(t, (struct pe_toy_opts){.bound = true});
    ptoy_put(t, t->delay + 28, 4, 77);
    copy_make(f);
    assert_int_equal(f->file.directories[IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT].rva, 0);
    assert_int_equal(f->file.directories[IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT].size, 0);
    for (size_t i = t->bound; i < t->headers_end; i++)
        assert_int_equal(f->bytes[i], 0);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 4; k < 12; k++)
            assert_int_equal(f->bytes[t->imports + 20 * i + k], 0);
    assert_memory_equal(f->bytes + t->delay + 28, "\0\0\0", 4);
    ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT), 4, t->bound - 8);
    assert_refused(f, EXTI_E_FORMAT, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT),
                   "not behind the section table");
}

/* A new name goes through all later replacements; each must apply at least once. */
static void replacements_follow_one_another(void **state)
{
    struct copy_fixture *f = *state;

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    copy_replace(f, "WS2_32", "python311.dll");
    copy_replace(f, "python311", "third.dll");
    assert_ok(copy_try(f), &f->err);
    copy_apply(f);
    assert_string_equal(copy_names(f),
                        "third.dll KERNEL32.dll delay third.dll | toy.pyd | " OWN_EXPORTS("third"));
    copy_replace(f, "nowhere.dll", "x.dll");
    assert_refused(f, EXTI_E_ARG, EXTI_NO_OFFSET, "there is no 'nowhere.dll' to replace");
}

static void invalid_requests_are_refused(void **state)
{
    static const struct {
        const char *from, *to;
        int code;
        const char *says;
    } cases[] = {
        {NULL, "x.dll", EXTI_E_UNSUPPORTED, "no library can be added to"},
        {"python311.dll", NULL, EXTI_E_UNSUPPORTED, "no library can be removed from"},
        {"python311.dll", "", EXTI_E_ARG, "has 0 characters"},
        {"python311.dll", "a/b.dll", EXTI_E_ARG, "has the character 0x2f"},
        {"python311.dll", "a\\b.dll", EXTI_E_ARG, "has the character 0x5c"},
        {"python311.dll", "a b.dll", EXTI_E_ARG, "has the character 0x20"},
        {"python311.dll", "caf\xc3\xa9.dll", EXTI_E_ARG, "has the character 0xc3"},
        {"python311.dll", "python311.c4.dll", EXTI_E_UNSUPPORTED, "without a dot"},
        {"python311.dll", "python311.pyd", EXTI_E_UNSUPPORTED, "without a dot"},
        {"python311.dll", "python311", 0, NULL},
    };
    static const struct exti_rename rename = {"a", "b"};
    struct copy_fixture *f = *state;
    char longest[257];

    pe_toy_make(&f->toy, (struct pe_toy_opts){0});
    for (size_t i = 0; i < ARRAY_SIZE(cases) - 1; i++) {
        f->opts.needed_count = 0;
        copy_replace(f, cases[i].from, cases[i].to);
        assert_refused(f, cases[i].code, ANY_OFFSET, cases[i].says);
    }
    memset(longest, 'x', sizeof longest - 1);
    longest[256] = 0;
    f->opts.needed_count = 0;
    f->opts.id = longest;
    assert_refused(f, EXTI_E_ARG, EXTI_NO_OFFSET, "has 256 characters; 1 to 255");
    f->opts.id = longest + 1;
    copy_make(f);
    f->opts.renames = &rename;
    f->opts.rename_count = 1;
    assert_refused(f, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET, "symbols of PE files cannot be renamed");
}

static void files_that_cannot_be_copied_are_refused(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    copy_replace(f, "python311", "k3x9q2m4f.dll");
    pe_toy_make(t, (struct pe_toy_opts){0});
    ptoy_put(t, t->nt + 22, 2, ptoy_get(t, t->nt + 22, 2) | IMAGE_FILE_RELOCS_STRIPPED);
    assert_refused(f, EXTI_E_UNSUPPORTED, t->nt + 22, "has no relocations");
    pe_toy_make(t, (struct pe_toy_opts){0});
    ptoy_put(t, ptoy_section(t, PTOY_TEXT) + 16, 4, 0);
    assert_refused(f, EXTI_E_UNSUPPORTED, ptoy_section(t, PTOY_TEXT),
                   "is packed: its first section");
    pe_toy_make(t, (struct pe_toy_opts){.bound = true, .no_lookup = true});
    assert_refused(f, EXTI_E_UNSUPPORTED, ANY_OFFSET, "bound");
    pe_toy_make(t, (struct pe_toy_opts){0});
    ptoy_put(t, t->load_config + 200, 8, 0x180001000);
    assert_refused(f, EXTI_E_UNSUPPORTED, ANY_OFFSET, "ARM64EC");
    pe_toy_make(t, (struct pe_toy_opts){0});
    ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_COM_DESCRIPTOR), 4, ptoy_rva(t, t->tls));
    assert_refused(f, EXTI_E_UNSUPPORTED, ANY_OFFSET, ".NET");
    t->b[0] = 0;
    assert_refused(f, EXTI_E_FORMAT, ANY_OFFSET, "MS-DOS header");
}

static void delay_imports_that_no_directory_lists_are_refused(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    copy_replace(f, "python311", "k3x9q2m4f.dll");
    pe_toy_make(t, (struct pe_toy_opts){.delayed = "Python311"});
    copy_make(f);
    assert_string_equal(
        copy_names(f),
        "k3x9q2m4f.dll KERNEL32.dll delay k3x9q2m4f.dll | toy.pyd | " OWN_EXPORTS("k3x9q2m4f"));
    ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT), 8, 0);
    assert_refused(f, EXTI_E_UNSUPPORTED, t->delay, "GNU dlltool");
    /* A delay import of a library that stays is harmless. */
    pe_toy_make(t, (struct pe_toy_opts){0});
    ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT), 8, 0);
    copy_make(f);
    /* A delay import of bind_file is refused, even if no import is renamed. */
    pe_toy_make(t, (struct pe_toy_opts){.delayed = "Python311"});
    ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT), 8, 0);
    f->opts.needed_count = 0;
    f->opts.bind_file = "/lib.dll/python311.dll";
    assert_refused(f, EXTI_E_UNSUPPORTED, t->delay, "GNU dlltool");
    f->opts.bind_file = "python312.dll";
    assert_ok(copy_try(f), &f->err);
}

/* Strings are unchanged if something else refers to them or to their end. */
static void shared_strings_are_not_overwritten(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    copy_replace(f, "python311", "k3x9q2m4f.dll");
    pe_toy_make(t, (struct pe_toy_opts){0});
    ptoy_put(t, t->imports + 20 + 12, 4, ptoy_rva(t, t->name[0]));
    copy_make(f);
    assert_memory_equal(f->bytes + t->name[0], "k3x9q2m4f.dll", 14);
    assert_memory_equal(f->bytes + t->imports, t->b + t->imports, 40);

    ptoy_put(t, t->exports + 12, 4, ptoy_rva(t, t->name[0]));
    copy_make(f);
    assert_memory_equal(f->bytes + t->name[0], "python311.dll", 14);
    assert_string_equal(
        copy_names(f),
        "k3x9q2m4f.dll k3x9q2m4f.dll delay WS2_32.dll | python311.dll | " OWN_EXPORTS("k3x9q2m4f"));
    f->opts.id = "k3x9q2m4f.dll";
    copy_make(f);
    assert_memory_equal(f->bytes + t->name[0], "k3x9q2m4f.dll", 14);
    f->opts.id = "another.dll";
    copy_make(f);
    assert_memory_equal(f->bytes + t->name[0], "python311.dll", 14);
    f->opts.id = NULL;

    for (size_t tail = 1; tail < 14; tail++) {
        pe_toy_make(t, (struct pe_toy_opts){0});
        ptoy_put(t, t->names + 12, 4, ptoy_rva(t, t->name[0]) + tail);
        copy_make(f);
        assert_memory_equal(f->bytes + t->name[0], "python311.dll", 14);
    }
    pe_toy_make(t, (struct pe_toy_opts){0});
    ptoy_put(t, t->iat[0], 8, ptoy_rva(t, t->name[0]) + 1);
    ptoy_put(t, t->lookup[0], 8, ptoy_rva(t, t->name[0]) + 1);
    copy_make(f);
    assert_memory_equal(f->bytes + t->name[0], "python311.dll", 14);

    /* A name in the headers. */
    pe_toy_make(t, (struct pe_toy_opts){0});
    memcpy(t->b + t->sections + 400, "python311.dll", 14);
    ptoy_put(t, t->imports + 12, 4, t->sections + 400);
    copy_make(f);
    assert_memory_equal(f->bytes + t->sections + 400, "python311.dll", 14);

    /* The exported name is the end of the imported one, and both change. */
    f->opts.id = "q.dll";
    pe_toy_make(t, (struct pe_toy_opts){0});
    ptoy_put(t, t->exports + 12, 4, ptoy_rva(t, t->name[0]) + 6);
    copy_make(f);
    assert_memory_equal(f->bytes + t->name[0], "python311.dll", 14);
    assert_string_equal(copy_names(f), NAMES("k3x9q2m4f.dll", "q.dll", "k3x9q2m4f"));
}

/* A name in a damaged or odd file may be a part of a table. */
static void tables_are_not_overwritten(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    f->opts.id = "k";
    for (size_t i = 0; i < 9; i++) {
        size_t at;

        pe_toy_make(t, (struct pe_toy_opts){0});
        const size_t places[] = {t->load_config + 0x100, t->tls,    t->debug,
                                 t->lookup[0],           t->iat[1], t->imports,
                                 t->functions,           t->names,  t->symbol_name - 1};

        at = places[i];
        if (i == 0)
            memcpy(t->b + at, "old", 3);
        if (i == 8)
            ptoy_put(t, t->symbol_name, 2, 0x4141);
        ptoy_put(t, t->exports + 12, 4, ptoy_rva(t, at));
        copy_make(f);
        assert_memory_equal(f->bytes + at, t->b + at, 4);
        assert_string_equal(f->file.sections ? copy_names(f) : "",
                            NAMES("python311.dll", "k", "python311"));
    }
}

static void exports_without_a_name_get_one(void **state)
{
    struct copy_fixture *f = *state;
    struct pe_toy *t = &f->toy;

    f->opts.id = "k.pyd";
    pe_toy_make(t, (struct pe_toy_opts){0});
    ptoy_put(t, t->exports + 12, 4, 0);
    copy_make(f);
    assert_string_equal(copy_names(f), NAMES("python311.dll", "k.pyd", "python311"));
    pe_toy_make(t, (struct pe_toy_opts){0});
    ptoy_put(t, ptoy_directory(t, IMAGE_DIRECTORY_ENTRY_EXPORT), 8, 0);
    assert_nothing_to_do(f, exti__span(t->b, t->n));
}

static void every_allocation_of_a_plan_may_fail(void **state)
{
    struct copy_fixture *f = *state;
    static const char *const exports[] = {"PyModule_Create2", "Py_BuildValue", NULL};

    f->opts.id = "toy-of-another-context.pyd";
    copy_replace(f, "python311.dll", LONGER);
    copy_replace(f, "WS2_32", "WS2_32-of-another-context.dll");
    f->opts.bind_name = LONGER;
    f->opts.bind_file = "python311.dll";
    pe_toy_make(&f->library, (struct pe_toy_opts){.exports = exports, .id = "python311.dll"});
    f->bind = exti__span(f->library.b, f->library.n);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        pe_toy_make(&f->toy, kinds[i]);
        if (kinds[i].low || kinds[i].arm || kinds[i].narrow)
            continue;
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
        copy_make(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        copy_test(no_edits_give_an_empty_plan),
        copy_test(names_of_the_same_length_are_set_in_place),
        copy_test(longer_names_are_set_in_every_kind_of_file),
        copy_test(a_copy_keeps_no_signature),
        copy_test(a_copy_has_no_bound_imports),
        copy_test(replacements_follow_one_another),
        copy_test(invalid_requests_are_refused),
        copy_test(files_that_cannot_be_copied_are_refused),
        copy_test(delay_imports_that_no_directory_lists_are_refused),
        copy_test(shared_strings_are_not_overwritten),
        copy_test(exports_without_a_name_get_one),
        copy_test(tables_are_not_overwritten),
        copy_test(every_allocation_of_a_plan_may_fail),
    };

    return cmocka_run_group_tests_name("pe/pe_plan", tests, NULL, NULL);
}
