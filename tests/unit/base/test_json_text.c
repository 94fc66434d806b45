#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/mem.h"

/* The keys and values have many lengths, so that the text grows within each kind of piece. */
static json_t *sample(size_t shift)
{
    static char fill[600];
    json_t *o = json_object();

    memset(fill, 'k', sizeof fill - 1);
    for (size_t n = 1; n < 40; n++)
        json_object_set_new(o, fill + sizeof fill - 1 - (7 * n + shift),
                            json_integer((json_int_t)n));
    return o;
}

static void a_text_is_complete_or_missing(void **state)
{
    struct test *t = *state;
    static const size_t flags[] = {JSON_COMPACT | JSON_SORT_KEYS, JSON_INDENT(2)};

    for (size_t shift = 0; shift < 64; shift++) {
        json_t *o = sample(shift);

        for (size_t f = 0; f < ARRAY_SIZE(flags); f++) {
            char *text = NULL, *whole = json_dumps(o, flags[f]);
            int rc = EXTI_E_NOMEM;

            for (long n = 0; rc; n++) {
                exti__mem_fail_after(n);
                rc = exti__json_text(o, flags[f], &text, &t->err);
                exti__mem_fail_after(-1);
                if (rc)
                    assert_exti(rc, EXTI_E_NOMEM, &t->err, EXTI_NO_OFFSET);
            }
            assert_string_equal(text, whole);
            exti__free(text);
            free(whole);
        }
        json_decref(o);
    }
}

static void a_missing_text_means_lack_of_memory(void **state)
{
    struct test *t = *state;
    char *text;

    assert_exti(exti__json_text(NULL, 0, &text, &t->err), EXTI_E_NOMEM, &t->err, EXTI_NO_OFFSET);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(a_text_is_complete_or_missing),
        exti_test(a_missing_text_means_lack_of_memory),
    };

    return cmocka_run_group_tests_name("json_text", tests, NULL, NULL);
}
