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

static void array_room_doubles_and_keeps_the_items(void **state)
{
    size_t cap = 0;
    int *items = NULL;

    (void)state;
    for (size_t i = 0; i < 100; i++) {
        const size_t before = cap;
        int *p = exti__array_room(items, i, &cap, sizeof *p);

        assert_non_null(p);
        assert_true(cap > i);
        if (i < before)
            assert_ptr_equal(p, items);
        else if (before)
            assert_int_equal(cap, 2 * before);
        items = p;
        items[i] = (int)i;
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(items[i], i);
    exti__free(items);
}

static void array_room_leaves_the_array_alone_on_failure(void **state)
{
    size_t cap = 0, full;
    char *items = exti__array_room(NULL, 0, &cap, 1);

    (void)state;
    assert_non_null(items);
    full = cap;
    memset(items, 'x', full);
    exti__mem_fail_after(0);
    assert_null(exti__array_room(items, full, &cap, 1));
    assert_int_equal(cap, full);
    assert_int_equal(items[full - 1], 'x');
    assert_null(exti__array_room(items, full, &cap, SIZE_MAX / 2));
    assert_int_equal(cap, full);
    exti__free(items);
}

static void copy_text_copies_and_accepts_null(void **state)
{
    struct exti_error err = {.code = 77};
    char text[] = "abc", *copy = text;

    (void)state;
    assert_int_equal(exti__copy_text(&copy, text, &err), 0);
    text[0] = 'x';
    assert_string_equal(copy, "abc");
    exti__free(copy);
    assert_int_equal(exti__copy_text(&copy, NULL, &err), 0);
    assert_null(copy);
    assert_int_equal(err.code, 77);
    exti__mem_fail_after(0);
    assert_int_equal(exti__copy_text(&copy, text, &err), EXTI_E_NOMEM);
    assert_null(copy);
    assert_int_equal(err.code, EXTI_E_NOMEM);
}

struct range {
    uintptr_t start, end;
};

static uintptr_t range_start(const void *item)
{
    return ((const struct range *)item)->start;
}

static size_t count_by_loop(const struct range *r, size_t count, uintptr_t address)
{
    size_t n = 0;

    while (n < count && r[n].start <= address)
        n++;
    return n;
}

static void count_up_to_agrees_with_a_loop(void **state)
{
    static const struct range ranges[] = {{0, 1}, {4, 6},   {6, 9},
                                          {6, 9}, {20, 21}, {UINTPTR_MAX, 0}};

    (void)state;
    for (size_t count = 0; count <= ARRAY_SIZE(ranges); count++) {
        for (uintptr_t address = 0; address < 30; address++)
            assert_int_equal(exti__count_up_to(ranges, count, sizeof *ranges, range_start, address),
                             count_by_loop(ranges, count, address));
        assert_int_equal(exti__count_up_to(ranges, count, sizeof *ranges, range_start, UINTPTR_MAX),
                         count);
    }
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
        cmocka_unit_test(array_room_doubles_and_keeps_the_items),
        cmocka_unit_test(array_room_leaves_the_array_alone_on_failure),
        cmocka_unit_test(copy_text_copies_and_accepts_null),
        cmocka_unit_test(count_up_to_agrees_with_a_loop),
    };

    return cmocka_run_group_tests_name("base/mem", tests, NULL, NULL);
}
