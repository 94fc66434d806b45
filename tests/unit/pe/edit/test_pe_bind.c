#include "tests/unit/pe/pe_copy.h"

static const char *const api[] = {"PyModule_Create2", "Py_BuildValue", NULL};
static const char *const part[] = {"PyModule_Create2", NULL};

/* An extension for the stable ABI, whose imports move from python3.dll to the copy of libpython. */
static void make_stable_extension(struct copy_fixture *f, struct pe_toy_opts o,
                                  const char *const *exports)
{
    o.api = "python3.dll";
    pe_toy_make(&f->toy, o);
    ptoy_put(&f->toy, ptoy_directory(&f->toy, IMAGE_DIRECTORY_ENTRY_EXPORT), 8, 0);
    pe_toy_make(&f->library,
                (struct pe_toy_opts){
                    .exports = exports, .id = "python311.dll", .arm = o.arm, .narrow = o.narrow});
    f->bind = exti__span(f->library.b, f->library.n);
    f->opts.bind_file = "/lib/python311.dll";
    f->opts.needed_count = 0;
    copy_replace(f, "python3.dll", "k3x9q2m4f.dll");
}

static void imports_move_to_the_library_itself(void **state)
{
    struct copy_fixture *f = *state;

    for (int kind = 0; kind < 3; kind++) {
        make_stable_extension(f, (struct pe_toy_opts){.arm = kind == 1, .narrow = kind == 2}, api);
        copy_make(f);
        assert_string_equal(copy_names(f), "k3x9q2m4f.dll KERNEL32.dll delay WS2_32.dll | - | ");
    }
}

static void symbols_missing_in_the_library_are_refused(void **state)
{
    struct copy_fixture *f = *state;

    make_stable_extension(f, (struct pe_toy_opts){0}, part);
    assert_refused(f, EXTI_E_UNSUPPORTED, ANY_OFFSET,
                   "imports 'Py_BuildValue' of python3.dll, which /lib/python311.dll does not");
    make_stable_extension(f, (struct pe_toy_opts){0}, api);
    ptoy_put(&f->library, ptoy_directory(&f->library, IMAGE_DIRECTORY_ENTRY_EXPORT), 8, 0);
    assert_refused(f, EXTI_E_UNSUPPORTED, ANY_OFFSET, "imports 'PyModule_Create2' of python3.dll");
}

/* An ordinal has a meaning only in the library that assigned it. */
static void only_ordinals_of_the_library_itself_are_accepted(void **state)
{
    struct copy_fixture *f = *state;

    make_stable_extension(f, (struct pe_toy_opts){.by_ordinal = true}, api);
    assert_refused(f, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET, "imports symbol #77 of python3.dll");
    memcpy(f->toy.b + f->toy.name[0], "python311", 10);
    f->opts.needed_count = 0;
    copy_replace(f, "python311", "k3x.dll");
    copy_make(f);
}

static void imports_of_other_libraries_are_not_checked(void **state)
{
    struct copy_fixture *f = *state;

    make_stable_extension(f, (struct pe_toy_opts){0}, api);
    copy_replace(f, "WS2_32", "x.dll");
    assert_refused(f, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET, "symbol #3 of WS2_32.dll");
    f->opts.bind_name = "k3x9q2m4f.dll";
    copy_make(f);
}

static void a_library_for_another_machine_is_refused(void **state)
{
    struct copy_fixture *f = *state;

    make_stable_extension(f, (struct pe_toy_opts){0}, api);
    ptoy_put(&f->library, f->library.nt + 4, 2, IMAGE_FILE_MACHINE_ARM64);
    assert_refused(f, EXTI_E_UNSUPPORTED, f->toy.nt + 4,
                   "is for x86-64, but /lib/python311.dll is for arm64");
    ptoy_put(&f->library, f->library.exports + 36, 4, 0x7fffffff);
    ptoy_put(&f->library, f->library.nt + 4, 2, IMAGE_FILE_MACHINE_AMD64);
    assert_refused(f, EXTI_E_FORMAT, ANY_OFFSET, "export ordinal table");
    assert_string_equal(f->err.file, "/lib/python311.dll");
    f->library.b[0] = 0;
    assert_refused(f, EXTI_E_FORMAT, ANY_OFFSET, "MS-DOS header");
    assert_string_equal(f->err.file, "/lib/python311.dll");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        copy_test(imports_move_to_the_library_itself),
        copy_test(symbols_missing_in_the_library_are_refused),
        copy_test(only_ordinals_of_the_library_itself_are_accepted),
        copy_test(imports_of_other_libraries_are_not_checked),
        copy_test(a_library_for_another_machine_is_refused),
    };

    return cmocka_run_group_tests_name("pe/pe_bind", tests, NULL, NULL);
}
