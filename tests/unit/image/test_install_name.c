#include "tests/support/exti_test.h"

#include "base/mem.h"
#include "loader/image/install_name.h"

static const char *paths[] = {"/opt/lib", "@loader_path/../.dylibs/", "@executable_path/lib",
                              "lib"};
static const struct exti_image image = {.paths = paths, .path_count = ARRAY_SIZE(paths)};

static void assert_file(const char *name, size_t i, const char *expected)
{
    struct exti_error err = {0};
    char *path;

    assert_ok(exti__install_name_file("/site/numpy/core/a.so", &image, name, i, &path, &err), &err);
    if (expected)
        assert_string_equal(path, expected);
    else
        assert_null(path);
    exti__free(path);
}

static void names_without_rpath_have_one_place(void **state)
{
    (void)state;
    assert_int_equal(exti__install_name_tries(&image, "/usr/lib/libz.dylib"), 1);
    assert_file("/usr/lib/libz.dylib", 0, "/usr/lib/libz.dylib");
    assert_file("@loader_path/../.dylibs/libx.dylib", 0, "/site/numpy/core/../.dylibs/libx.dylib");
    assert_file("@executable_path/libx.dylib", 0, NULL);
    assert_file("libx.dylib", 0, NULL);
}

static void rpaths_are_tried_in_order(void **state)
{
    (void)state;
    assert_int_equal(exti__install_name_tries(&image, "@rpath/libx.dylib"), 4);
    assert_file("@rpath/libx.dylib", 0, "/opt/lib/libx.dylib");
    assert_file("@rpath/libx.dylib", 1, "/site/numpy/core/../.dylibs/libx.dylib");
    assert_file("@rpath/libx.dylib", 2, NULL);
    assert_file("@rpath/libx.dylib", 3, NULL);
}

static void every_allocation_may_fail(void **state)
{
    static const char *const names[] = {"/a", "@loader_path/a", "@rpath/a"};
    long n;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct exti_error err = {0};
        char *path = NULL;
        int rc = EXTI_E_NOMEM;

        for (n = 0; rc; n++) {
            exti__mem_fail_after(n);
            rc = exti__install_name_file("/x/y", &image, names[i], 0, &path, &err);
            exti__mem_fail_after(-1);
            if (rc)
                assert_exti(rc, EXTI_E_NOMEM, &err, EXTI_NO_OFFSET);
        }
        assert_int_equal(n, i == 2 ? 3 : 2);
        exti__free(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_without_rpath_have_one_place),
        cmocka_unit_test(rpaths_are_tried_in_order),
        cmocka_unit_test(every_allocation_may_fail),
    };

    return cmocka_run_group_tests_name("image/install_name", tests, NULL, NULL);
}
