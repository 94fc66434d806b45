#include "tests/support/exti_test.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

static void every_code_has_its_name(void **state)
{
    static const struct {
        int code;
        const char *name;
    } cases[] = {
        {0, "EXTI_OK"},
        {-1, "EXTI_E_ARG"},
        {-2, "EXTI_E_NOMEM"},
        {-3, "EXTI_E_IO"},
        {-4, "EXTI_E_FORMAT"},
        {-5, "EXTI_E_UNSUPPORTED"},
        {-6, "EXTI_E_NOSPACE"},
        {-7, "EXTI_E_LOAD"},
        {-8, "EXTI_E_NOSYM"},
        {-9, "EXTI_E_HOOK"},
        {-10, "EXTI_E_INTERPOSED"},
        {-11, "EXTI_E_CHECK"},
        {-12, "EXTI_E_BUSY"},
        {-13, "EXTI_E_TRUST"},
        {-14, "EXTI_E_CAPTURED"},
        {-15, "unknown error code"},
        {1, "unknown error code"},
        {INT32_MIN, "unknown error code"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_string_equal(exti_code_name(cases[i].code), cases[i].name);
}

static void version_is_that_of_the_header(void **state)
{
    char want[32];

    (void)state;
    snprintf(want, sizeof want, "%d.%d.%d", EXTI_VERSION_MAJOR, EXTI_VERSION_MINOR,
             EXTI_VERSION_PATCH);
    assert_string_equal(exti_version(), want);
}

static void fail_fills_in_all_members(void **state)
{
    struct exti_error err;

    (void)state;
    memset(&err, 0x5a, sizeof err);
    assert_exti(exti__fail(&err, EXTI_E_FORMAT, 64, "DT_STRTAB: %d left", 512), EXTI_E_FORMAT, &err,
                64);
    assert_string_equal(err.message, "DT_STRTAB: 512 left");
    assert_string_equal(err.file, "");
    assert_int_equal(err.os_error, 0);
}

static void fail_io_adds_the_file_and_the_systems_message(void **state)
{
    struct exti_error err;

    (void)state;
    assert_exti(exti__fail_io(&err, ENOSPC, "/a/b.so", "cannot write %d bytes", 9), EXTI_E_IO, &err,
                EXTI_NO_OFFSET);
    assert_string_equal(err.file, "/a/b.so");
    assert_int_equal(err.os_error, ENOSPC);
    assert_string_equal(err.message, "cannot write 9 bytes: No space left on device");
}

static void fail_io_reports_lack_of_memory_as_such(void **state)
{
    struct exti_error err;

    (void)state;
    assert_exti(exti__fail_io(&err, ENOMEM, "f", "cannot map"), EXTI_E_NOMEM, &err, EXTI_NO_OFFSET);
    assert_int_equal(exti__fail_io(NULL, ENOMEM, "f", "cannot map"), EXTI_E_NOMEM);
    assert_int_equal(exti__fail_io(NULL, EIO, "f", "cannot map"), EXTI_E_IO);
}

static void details_are_optional(void **state)
{
    (void)state;
    assert_int_equal(exti__fail(NULL, EXTI_E_ARG, 0, "x"), EXTI_E_ARG);
    assert_int_equal(exti__fail_nomem(NULL), EXTI_E_NOMEM);
    exti__error_file(NULL, "f");
}

static void out_of_memory_has_a_message(void **state)
{
    struct exti_error err;

    (void)state;
    assert_exti(exti__fail_nomem(&err), EXTI_E_NOMEM, &err, EXTI_NO_OFFSET);
    assert_string_equal(err.message, "out of memory");
}

static void long_message_keeps_its_head(void **state)
{
    char text[2000];
    struct exti_error err;

    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    exti__fail(&err, EXTI_E_ARG, 0, "head %s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_memory_equal(err.message, "head xxx", 8);

    exti__fail_io(&err, EIO, "f", "head %s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_memory_equal(err.message, "head xxx", 8);
}

static void long_path_keeps_its_tail(void **state)
{
    char path[2000];
    struct exti_error err;
    size_t fits = sizeof err.file - 1;

    (void)state;
    for (size_t i = 0; i < sizeof path - 1; i++)
        path[i] = (char)('a' + i % 26);
    path[sizeof path - 1] = 0;
    exti__fail_io(&err, EIO, path, "cannot read");
    assert_string_equal(err.file, path + sizeof path - 1 - fits);

    /* One that just fits is whole. */
    path[fits] = 0;
    exti__fail_io(&err, EIO, path, "cannot read");
    assert_string_equal(err.file, path);
}

static void first_file_named_stays(void **state)
{
    struct exti_error err;

    (void)state;
    exti__fail(&err, EXTI_E_ARG, 0, "x");
    exti__error_file(&err, NULL);
    assert_string_equal(err.file, "");
    exti__error_file(&err, "first");
    exti__error_file(&err, "second");
    assert_string_equal(err.file, "first");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_name),
        cmocka_unit_test(version_is_that_of_the_header),
        cmocka_unit_test(fail_fills_in_all_members),
        cmocka_unit_test(fail_io_adds_the_file_and_the_systems_message),
        cmocka_unit_test(fail_io_reports_lack_of_memory_as_such),
        cmocka_unit_test(details_are_optional),
        cmocka_unit_test(out_of_memory_has_a_message),
        cmocka_unit_test(long_message_keeps_its_head),
        cmocka_unit_test(long_path_keeps_its_tail),
        cmocka_unit_test(first_file_named_stays),
    };

    return cmocka_run_group_tests_name("base/error", tests, NULL, NULL);
}
