/* The part of exti_test.h that needs only the C library; exti_test_posix.c has the rest. */
#include "tests/support/exti_test.h"

#include <stdlib.h>
#include <string.h>

/* EXTI_TEST=GLOB runs only the cases whose names match. */
__attribute__((constructor)) static void filter_cases(void)
{
    const char *glob = getenv("EXTI_TEST");

    if (glob)
        cmocka_set_test_filter(glob);
}

struct test_owned {
    struct test_owned *next;
    max_align_t bytes[];
};

void test_assert_exti(int rc, int code, const struct exti_error *err, uint64_t offset,
                      const char *call, const char *file, int line)
{
    if (rc != code) {
        print_error("%s\n  gives %s, not %s\n", call, exti_code_name(rc), exti_code_name(code));
        if (rc && err)
            print_error("  \"%s\", file \"%s\", offset %lld\n", err->message, err->file,
                        (long long)err->offset);
        _fail(file, line);
    }
    if (!rc || !err)
        return;
    if (err->code != code || !err->message[0]) {
        print_error("%s\n  gives %s but the error has %s, \"%s\"\n", call, exti_code_name(rc),
                    exti_code_name(err->code), err->message);
        _fail(file, line);
    }
    if (offset != ANY_OFFSET && err->offset != offset) {
        print_error("%s\n  \"%s\" is at offset %lld, not %lld\n", call, err->message,
                    (long long)err->offset, (long long)offset);
        _fail(file, line);
    }
}

void test_assert_contains(const char *whole, const char *text, const char *file, int line)
{
    if (whole && strstr(whole, text))
        return;
    print_error("\"%s\" does not contain \"%s\"\n", whole ? whole : "(null)", text);
    _fail(file, line);
}

bool test_under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");

    return preload && strstr(preload, "vgpreload");
}

bool test_is_emulated(void)
{
    return getenv("EXTI_EMULATED") != NULL;
}

void *test_alloc(struct test *t, size_t n)
{
    struct test_owned *o = calloc(1, sizeof *o + n);

    assert_non_null(o);
    o->next = t->owned;
    t->owned = o;
    return o->bytes;
}

char *test_format(struct test *t, const char *fmt, ...)
{
    va_list ap;
    char *text;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    assert_true(n >= 0);
    text = test_alloc(t, (size_t)n + 1);
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    return text;
}

char *test_path(struct test *t, const char *name)
{
    return test_format(t, "%s/%s", t->dir, name);
}

void test_end(struct test *t)
{
    while (t->owned) {
        struct test_owned *next = t->owned->next;

        free(t->owned);
        t->owned = next;
    }
    free(t);
}
