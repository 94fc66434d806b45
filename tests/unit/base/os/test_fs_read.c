#include "tests/support/exti_test.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/os/fs_read.h"

static void read_gives_the_whole_file(void **state)
{
    static const size_t sizes[] = {0, 1, 4096, 100000};
    struct test *t = *state;
    char *path = test_path(t, "f");

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        char *bytes = test_alloc(t, sizes[i]), *text;
        size_t n;

        memset(bytes, 'x', sizes[i]);
        test_write(path, bytes, sizes[i]);
        /* A limit of exactly the file's size is enough. */
        assert_ok(exti__fs_read(path, sizes[i], &text, &n, &t->err), &t->err);
        assert_int_equal(n, sizes[i]);
        assert_memory_equal(text, bytes, n);
        assert_int_equal(text[n], 0);
        exti__free(text);
    }
}

static void read_refuses_more_than_asked_for(void **state)
{
    static const size_t limits[] = {0, 1, 9, 99, 4095};
    struct test *t = *state;
    char *path = test_path(t, "f"), *text;
    size_t n;

    test_write(path, test_alloc(t, 4096), 4096);
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        assert_exti(exti__fs_read(path, limits[i], &text, &n, &t->err), EXTI_E_FORMAT, &t->err,
                    limits[i]);
        assert_says(&t->err, "file has more than");
        assert_string_equal(t->err.file, path);
    }
}

/* One file has content although its size is given as 0; another grows while it is read. */
static void read_does_not_trust_the_size(void **state)
{
    struct test *t = *state;
    char *text;
    size_t n;

    if (access("/proc/self/maps", R_OK) != 0)
        skip_because("no /proc here");
    assert_ok(exti__fs_read("/proc/self/maps", 1 << 20, &text, &n, &t->err), &t->err);
    assert_true(n > 100);
    assert_int_equal(strlen(text), n);
    exti__free(text);
    assert_exti(exti__fs_read("/proc/self/maps", 40, &text, &n, &t->err), EXTI_E_FORMAT, &t->err,
                40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(read_gives_the_whole_file),
        exti_test(read_refuses_more_than_asked_for),
        exti_test(read_does_not_trust_the_size),
    };

    return cmocka_run_group_tests_name("base/os/fs_read", tests, NULL, NULL);
}
