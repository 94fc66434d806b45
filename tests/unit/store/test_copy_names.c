#include "base/path.h"
#include "tests/support/exti_test.h"

#include <string.h>

#include "loader/store/copy_names.h"

static void made_names_are_valid_and_differ(void **state)
{
    char a[EXTI_NAME_MAX + 1], b[EXTI_NAME_MAX + 1];

    (void)state;
    assert_int_equal(exti__context_name_make(a, NULL), 0);
    assert_int_equal(exti__context_name_make(b, NULL), 0);
    assert_int_equal(strlen(a), 8);
    assert_int_equal(exti__context_name_check(a, NULL), 0);
    assert_string_not_equal(a, b);
}

static void names_that_could_leave_the_directory_are_refused(void **state)
{
    static const char *const bad[] = {
        "", "a/b", "..", "a b", "a.b", "\n", "\xc3\xa9", "123456789012345678901234567890123"};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_exti(exti__context_name_check(bad[i], &t->err), EXTI_E_ARG, &t->err, EXTI_NO_OFFSET);
    assert_int_equal(exti__context_name_check("12345678901234567890123456789012", NULL), 0);
}

static void api_copies_still_look_like_their_library(void **state)
{
    char out[EXTI_FILE_NAME_MAX + 1];

    (void)state;
    exti__copy_name_api("/usr/lib/libpython3.11.so.1.0", "k3x9q2m4", 1, out);
    assert_string_equal(out, "libpython3.11.so.k3x9q2m4");
    exti__copy_name_api("/usr/lib/libpython3.11.so.1.0", "k3x9q2m4", 3, out);
    assert_string_equal(out, "libpython3.11.so.k3x9q2m4.3");
    exti__copy_name_api("plain", "c", 1, out);
    assert_string_equal(out, "plain.c");
}

static void copies_of_hidden_files_are_not_hidden(void **state)
{
    char out[EXTI_FILE_NAME_MAX + 1];

    (void)state;
    exti__copy_name_api("/x/.libapi.so.1", "c", 1, out);
    assert_string_equal(out, "libapi.so.c");
    exti__copy_name("/x/.a.so", "c", out);
    assert_memory_equal(out, "a.c-", 4);
    assert_true(exti__copy_name_is_of(out, "c"));
    exti__copy_name("/x/...", "c", out);
    assert_memory_equal(out, "_.c-", 4);
}

static void an_api_id_overwrites_the_old_one_in_place(void **state)
{
    char out[EXTI_FILE_NAME_MAX + 1];
    static const char copy[] = "libpython3.11.so.k3x9q2m4";

    (void)state;
    exti__copy_name_api_id("libpython3.11.so.1.0", copy, out);
    assert_string_equal(out, "libpython3.11.so.k3x");
    /* No distinct name fits, so the whole one is needed. */
    exti__copy_name_api_id("libpython3.11.so", copy, out);
    assert_string_equal(out, copy);
    exti__copy_name_api_id("libpython3.11.so.", copy, out);
    assert_string_equal(out, copy);
    exti__copy_name_api_id(NULL, copy, out);
    assert_string_equal(out, copy);
    exti__copy_name_api_id("libpython3.11.so.1.0", "libpython3.11.so.c1", out);
    assert_string_equal(out, "libpython3.11.so.c1");
}

static void copies_of_equal_names_from_different_folders_differ(void **state)
{
    char a[EXTI_FILE_NAME_MAX + 1], b[EXTI_FILE_NAME_MAX + 1];

    (void)state;
    exti__copy_name("/a/_core.cpython-311-x86_64-linux-gnu.so", "ctx", a);
    exti__copy_name("/b/_core.cpython-311-x86_64-linux-gnu.so", "ctx", b);
    assert_string_not_equal(a, b);
    assert_int_equal(strncmp(a, "_core.ctx-", 10), 0);
    assert_string_equal(a + strlen(a) - 32, ".cpython-311-x86_64-linux-gnu.so");
}

static void long_names_stay_file_names_and_distinct(void **state)
{
    char path[600], a[EXTI_FILE_NAME_MAX + 1], b[EXTI_FILE_NAME_MAX + 1];

    (void)state;
    memset(path, 'x', sizeof path);
    path[0] = '/';
    memcpy(path + 252, ".so", 4);
    exti__copy_name(path, "12345678901234567890123456789012", a);
    path[250] = 'y';
    exti__copy_name(path, "12345678901234567890123456789012", b);
    assert_true(strlen(a) <= EXTI_FILE_NAME_MAX);
    assert_string_not_equal(a, b);
    memset(path + 1, '.', 251);
    exti__copy_name(path, "c", a);
    assert_true(strlen(a) <= EXTI_FILE_NAME_MAX);
}

static void install_names_are_short_and_differ(void **state)
{
    char a[EXTI_FILE_NAME_MAX + 1], b[EXTI_FILE_NAME_MAX + 1];

    (void)state;
    exti__copy_name_install("ctx", "libpython3.13.dylib.ctx", 0, a);
    assert_int_equal(strlen(a), 1 + EXTI_INSTALL_LEAST);
    assert_int_equal(a[0], '/');
    assert_int_equal(
        strspn(a + 1, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        EXTI_INSTALL_LEAST);
    exti__copy_name_install("ctx", "libpython3.13.dylib.ctx", 0, b);
    assert_string_equal(a, b);
    exti__copy_name_install("cty", "libpython3.13.dylib.ctx", 0, b);
    assert_string_not_equal(a, b);
    exti__copy_name_install("ctx", "libpython3.12.dylib.ctx", 0, b);
    assert_string_not_equal(a, b);
    /* As long as the old name allows, up to ten characters. */
    exti__copy_name_install("ctx", "libfoo", 9, b);
    assert_int_equal(strlen(b), 9);
    exti__copy_name_install("ctx", "libfoo", 200, b);
    assert_int_equal(strlen(b), 11);
}

static void a_pe_api_copy_is_as_long_as_python311(void **state)
{
    char a[EXTI_FILE_NAME_MAX + 1], b[EXTI_FILE_NAME_MAX + 1];

    (void)state;
    exti__copy_name_pe_api("C/python311.dll", "k3x9q2m4", 1, a);
    assert_string_equal(a, "pk3x9q2m4.dll");
    exti__copy_name_pe_api("C/python311.dll", "k3x9q2m4", 2, b);
    assert_int_equal(strlen(b), strlen(a));
    assert_string_not_equal(a, b);
    /* No dots, capitals or hyphens, whatever the context is called. */
    exti__copy_name_pe_api("C/PYTHON311.DLL", "My-Context_1", 1, b);
    assert_int_equal(strlen(b), strlen(a));
    assert_int_equal(strspn(b, "abcdefghijklmnopqrstuvwxyz0123456789"), 9);
    assert_string_equal(b + 9, ".DLL");
    exti__copy_name_pe_stable_abi("k3x9q2m4", a);
    assert_string_equal(a, "sk3x9q2m4.dll");
    assert_true(exti__copy_name_is_of(a, "k3x9q2m4"));
    assert_false(exti__copy_name_is_of(a, "other"));
    exti__copy_name_pe_stable_abi("My-Context_1", a);
    assert_int_equal(strspn(a, "abcdefghijklmnopqrstuvwxyz0123456789"), 9);
}

/* The name keeps its length where there is room, and has one dot. */
static void a_pe_copy_name_shows_source_and_context(void **state)
{
    static const char vendored[] = "/l/libopenblas64__v0.3.23-gcc_10_3_0.dll",
                      odd[] = "/l/\xc3\xa4 b.c?.DLL", *sources[] = {vendored, odd, "/l/zlib1.dll"};
    char a[EXTI_FILE_NAME_MAX + 1], b[EXTI_FILE_NAME_MAX + 1], longest[400];

    (void)state;
    exti__copy_name_pe(vendored, "k3x9q2m4", a);
    assert_int_equal(strlen(a), strlen(vendored) - 3);
    assert_int_equal(strncmp(a, "libopenblas64__v-k3x9q2m4", 25), 0);
    exti__copy_name_pe("/m/libopenblas64__v0.3.23-gcc_10_3_0.dll", "k3x9q2m4", b);
    assert_string_not_equal(a, b);
    exti__copy_name_pe("/l/zlib1.dll", "k3x9q2m4", a);
    assert_int_equal(strncmp(a, "zlib1-k3x9q2m4", 14), 0);
    assert_int_equal(strlen(a), 5 + 17 + 4);
    exti__copy_name_pe(odd, "My-Context_1", a);
    assert_int_equal(strncmp(a, "___b_c_-", 8), 0);
    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        exti__copy_name_pe(sources[i], "My-Context_1", a);
        assert_true(exti__copy_name_pe_fits(a));
        assert_true(exti__copy_name_is_of(a, "My-Context_1"));
        assert_false(exti__copy_name_is_of(a, "my-context_1"));
    }
    memset(longest, 'x', sizeof longest);
    strcpy(longest + sizeof longest - 5, ".dll");
    exti__copy_name_pe(longest, "k3x9q2m4", a);
    assert_true(strlen(a) < 200 && exti__copy_name_is_of(a, "k3x9q2m4"));
    assert_false(exti__copy_name_is_of("zlib1-k3x9q2m4.dll", "k3x9q2m4"));
    assert_false(exti__copy_name_is_of("-k3x9q2m4abcdefgh.dll", "k3x9q2m4"));
    assert_false(exti__copy_name_is_of("z-k3x9q2m4abcdefgh.pyd", "k3x9q2m4"));
}

static void reserved_names_do_not_fit_a_pe_copy(void **state)
{
    static const char *const bad[] = {"python311.dll", "PYTHON3.dll",  "a.b.dll",   "plain",
                                      ".dll",          "api-ms-x.dll", "EXT-x.dll", "python9.pyd"};
    static const char *const good[] = {"pk3x9q2m4.dll", "python311-c1.dll", "python.dll",
                                       "pythonx3.dll"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(exti__copy_name_pe_fits(bad[i]));
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(exti__copy_name_pe_fits(good[i]));
}

static void only_names_of_copies_are_taken_for_copies(void **state)
{
    char copy[EXTI_FILE_NAME_MAX + 1];

    (void)state;
    exti__copy_name("/a/_core.abi3.so", "ctx", copy);
    assert_true(exti__copy_name_is_of(copy, "ctx"));
    exti__copy_name("/a/plain", "ctx", copy);
    assert_true(exti__copy_name_is_of(copy, "ctx"));
    assert_false(exti__copy_name_is_of(copy, "ct"));
    assert_false(exti__copy_name_is_of("notes.ctx-draft.txt", "ctx"));
    assert_false(exti__copy_name_is_of("notes.ctx.txt", "ctx"));
    assert_false(exti__copy_name_is_of("notes.ctx-123456789", "ctx"));
    assert_false(exti__copy_name_is_of("", "ctx"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(install_names_are_short_and_differ),
        exti_test(a_pe_api_copy_is_as_long_as_python311),
        exti_test(a_pe_copy_name_shows_source_and_context),
        cmocka_unit_test(reserved_names_do_not_fit_a_pe_copy),
        exti_test(only_names_of_copies_are_taken_for_copies),
        exti_test(made_names_are_valid_and_differ),
        exti_test(names_that_could_leave_the_directory_are_refused),
        exti_test(api_copies_still_look_like_their_library),
        exti_test(copies_of_hidden_files_are_not_hidden),
        exti_test(an_api_id_overwrites_the_old_one_in_place),
        exti_test(copies_of_equal_names_from_different_folders_differ),
        exti_test(long_names_stay_file_names_and_distinct),
    };

    return cmocka_run_group_tests_name("loader/names", tests, NULL, NULL);
}
