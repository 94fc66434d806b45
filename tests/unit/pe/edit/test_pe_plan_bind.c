#include "tests/unit/pe/pe_copy.h"

static const char *const api[] = {"PyModule_Create2", "Py_BuildValue", NULL};
static const char *const part[] = {"PyModule_Create2", NULL};

/* An extension for the stable ABI, whose imports of python3.dll are to be its libpython's. */
static void make(struct copy_fixture *f, struct pe_toy_opts o, const char *const *exports)
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

static void imports_are_taken_from_the_library_itself(void **state)
{
    struct copy_fixture *f = *state;

    for (int kind = 0; kind < 3; kind++) {
        make(f, (struct pe_toy_opts){.arm = kind == 1, .narrow = kind == 2}, api);
        copy_make(f);
        assert_string_equal(copy_names(f), "k3x9q2m4f.dll KERNEL32.dll delay WS2_32.dll | - | ");
    }
}

static void symbols_that_it_lacks_are_refused(void **state)
{
    struct copy_fixture *f = *state;

    make(f, (struct pe_toy_opts){0}, part);
    assert_refused(f, EXTI_E_UNSUPPORTED, ANY_OFFSET,
                   "imports 'Py_BuildValue' of python3.dll, which /lib/python311.dll does not");
    make(f, (struct pe_toy_opts){0}, api);
    ptoy_put(&f->library, ptoy_directory(&f->library, IMAGE_DIRECTORY_ENTRY_EXPORT), 8, 0);
    assert_refused(f, EXTI_E_UNSUPPORTED, ANY_OFFSET, "imports 'PyModule_Create2' of python3.dll");
}

/* A number means something only to the library that gave it. */
static void ordinals_are_refused_but_for_its_own(void **state)
{
    struct copy_fixture *f = *state;

    make(f, (struct pe_toy_opts){.by_ordinal = true}, api);
    assert_refused(f, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET, "imports symbol #77 of python3.dll");
    memcpy(f->toy.b + f->toy.name[0], "python311", 10);
    f->opts.needed_count = 0;
    copy_replace(f, "python311", "k3x.dll");
    copy_make(f);
}

static void other_libraries_are_not_asked_for(void **state)
{
    struct copy_fixture *f = *state;

    make(f, (struct pe_toy_opts){0}, api);
    copy_replace(f, "WS2_32", "x.dll");
    assert_refused(f, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET, "symbol #3 of WS2_32.dll");
    f->opts.bind_name = "k3x9q2m4f.dll";
    copy_make(f);
}

static void the_library_must_be_one_for_the_machine(void **state)
{
    struct copy_fixture *f = *state;

    make(f, (struct pe_toy_opts){0}, api);
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
        copy_test(imports_are_taken_from_the_library_itself),
        copy_test(symbols_that_it_lacks_are_refused),
        copy_test(ordinals_are_refused_but_for_its_own),
        copy_test(other_libraries_are_not_asked_for),
        copy_test(the_library_must_be_one_for_the_machine),
    };

    return cmocka_run_group_tests_name("pe/pe_bind", tests, NULL, NULL);
}
