#include "tests/support/exti_test.h"

#include <pthread.h>
#include <string.h>

#include "base/mem.h"

static void size_0_can_be_freed(void **state)
{
    void *blocks[] = {exti__alloc(0), exti__calloc(0, 8), exti__calloc(8, 0),
                      exti__realloc(NULL, 0), exti__realloc_array(NULL, 0, 4)};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(blocks); i++) {
        assert_non_null(blocks[i]);
        exti__free(blocks[i]);
    }
    exti__free(NULL);
}

static void calloc_gives_zeros(void **state)
{
    static const char zeros[4096];
    void *p = exti__calloc(64, 64);

    (void)state;
    assert_non_null(p);
    assert_memory_equal(p, zeros, sizeof zeros);
    exti__free(p);
}

static void array_size_overflow_gives_no_memory(void **state)
{
    char *p = exti__alloc(8);

    (void)state;
    assert_non_null(p);
    memcpy(p, "as was.", 8);
    assert_null(exti__realloc_array(p, SIZE_MAX / 2, 3));
    assert_null(exti__realloc_array(p, SIZE_MAX, SIZE_MAX));
    assert_string_equal(p, "as was.");
    exti__free(p);
}

static void realloc_array_keeps_the_bytes(void **state)
{
    char *p = exti__strdup("abc"), *q;

    (void)state;
    assert_non_null(p);
    q = exti__realloc_array(p, 1000, 1000);
    assert_non_null(q);
    assert_string_equal(q, "abc");
    exti__free(q);
}

static void strdup_copies(void **state)
{
    const char *texts[] = {"", "x", "longer than a few bytes"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        char *copy = exti__strdup(texts[i]);

        assert_ptr_not_equal(copy, texts[i]);
        assert_string_equal(copy, texts[i]);
        exti__free(copy);
    }
}

static void *by_alloc(void)
{
    return exti__alloc(4);
}

static void *by_calloc(void)
{
    return exti__calloc(4, 4);
}

static void *by_realloc(void)
{
    return exti__realloc(NULL, 4);
}

static void *by_realloc_array(void)
{
    return exti__realloc_array(NULL, 4, 4);
}

static void *by_strdup(void)
{
    return exti__strdup("four");
}

static void every_call_can_be_made_to_fail_once(void **state)
{
    void *(*const calls[])(void) = {by_alloc, by_calloc, by_realloc, by_realloc_array, by_strdup};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
        for (long n = 0; n < 4; n++) {
            exti__mem_fail_after(n);
            for (long k = 0; k < 6; k++) {
                void *p = calls[i]();

                assert_int_equal(p == NULL, k == n);
                exti__free(p);
            }
        }
    }
    exti__mem_fail_after(-1);
}

static void failing_can_be_switched_off(void **state)
{
    void *p;

    (void)state;
    exti__mem_fail_after(0);
    exti__mem_fail_after(-1);
    p = exti__alloc(1);
    assert_non_null(p);
    exti__free(p);
}

static void *allocates(void *arg)
{
    void *p = exti__alloc(1);

    exti__free(p);
    *(bool *)arg = p != NULL;
    return NULL;
}

static void other_threads_do_not_fail(void **state)
{
    bool worked = false;
    pthread_t thread;

    (void)state;
    exti__mem_fail_after(0);
    assert_int_equal(pthread_create(&thread, NULL, allocates, &worked), 0);
    pthread_join(thread, NULL);
    assert_true(worked);
    assert_null(exti__alloc(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_0_can_be_freed),
        cmocka_unit_test(calloc_gives_zeros),
        cmocka_unit_test(array_size_overflow_gives_no_memory),
        cmocka_unit_test(realloc_array_keeps_the_bytes),
        cmocka_unit_test(strdup_copies),
        cmocka_unit_test(every_call_can_be_made_to_fail_once),
        cmocka_unit_test(failing_can_be_switched_off),
        cmocka_unit_test(other_threads_do_not_fail),
    };

    return cmocka_run_group_tests_name("base/mem", tests, NULL, NULL);
}
