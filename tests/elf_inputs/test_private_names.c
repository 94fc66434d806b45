/* Private names for an API library whose names have no other of the same length and hash: the real
 * loader, readelf, llvm-readobj and eu-elflint read the copies. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <dlfcn.h>
#include <string.h>

#include "loader/image/inspect.h"
#include "loader/store/private_symbols.h"

enum { COUNT = 400 };

static const char *const styles[] = {"gnu", "sysv", "both"};

/* Every fifth name is one like those of R, all others have a pair of letters to exchange. */
static char *name_of(struct test *t, int i)
{
    return i == 0       ? test_format(t, "R_NaN")
           : i % 5 == 0 ? test_format(t, "R_%d_%d", i, i)
                        : test_format(t, "Rf_any_%d", i);
}

/* A library that defines the names, without the first `from`. */
static char *build_api(struct test *t, const char *file, int from, const char *flags)
{
    char *source = test_alloc(t, COUNT * 96), *path = test_path(t, file);

    for (int i = from; i < COUNT; i++)
        sprintf(source + strlen(source), "int %s(void) { return %d; }\n", name_of(t, i), i);
    test_write(test_path(t, "api.c"), source, strlen(source));
    test_must_run(
        t, "sh", "-c",
        test_format(t, "gcc -shared -fPIC -O1 -o '%s' '%s' %s", path, test_path(t, "api.c"), flags),
        NULL);
    return path;
}

static char *shell(struct test *t, const char *command)
{
    return test_must_run(t, "sh", "-c", command, NULL);
}

/* The hash table as llvm-readobj reads it; NULL if that is not installed. */
static char *table_of(struct test *t, const char *path, bool gnu, const char *filter)
{
    return test_have("llvm-readobj-16")
               ? shell(t, test_format(t, "llvm-readobj-16 --%s '%s' 2>&1 | sed -n '%s'",
                                      gnu ? "gnu-hash-table" : "hash-table", path, filter))
               : NULL;
}

/* In place, the buckets of DT_GNU_HASH stay. */
static void tools_read(struct test *t, const char *source, const char *copy, bool gnu,
                       bool in_place)
{
    static const char buckets[] = "/Num Buckets/p;/First Hashed/p;/Buckets:/p";
    char *table = table_of(t, copy, gnu, "p"), *was, *now;

    if (table) {
        assert_null(strstr(table, "warning"));
        assert_contains(table, "Num Buckets");
    }
    if (table && gnu && in_place)
        assert_string_equal(table_of(t, copy, gnu, buckets), table_of(t, source, gnu, buckets));
    now = shell(t, test_format(t, "readelf -sDW '%s' 2>&1", copy));
    assert_contains(now, " R_NaN__");
    assert_null(strstr(now, " R_NaN\n"));
    assert_null(strstr(now, "arning"));
    if (!test_have("eu-elflint"))
        return;
    test_run(t, &was, "eu-elflint", "--gnu-ld", source, NULL);
    test_run(t, &now, "eu-elflint", "--gnu-ld", copy, NULL);
    if (strcmp(was, now) != 0)
        fail_msg("eu-elflint says of the copy: %s\nof the source: %s", now, was);
}

/* ld.so finds each definition by its private name alone. */
static void loader_finds(struct test *t, const char *copy, int from,
                         const struct exti_private_symbols *map)
{
    void *h = dlopen(copy, RTLD_NOW | RTLD_LOCAL);

    if (!h)
        fail_msg("%s", dlerror());
    for (int i = from; i < COUNT; i++) {
        const char *to = exti__private_symbol_find(map, name_of(t, i));
        int (*f)(void);

        assert_non_null(to);
        f = (int (*)(void))dlsym(h, to);
        if (!f || f() != i || dlsym(h, name_of(t, i)))
            fail_msg("%s is not found as %s alone", name_of(t, i), to);
    }
    dlclose(h);
}

/* A map that out-lives the test's steps; freed by its last step. */
static struct exti_private_symbols map_of(struct test *t, const char *path)
{
    struct exti_private_symbols map;
    struct exti_image *im;

    assert_ok(exti__inspect(path, &im, &t->err), &t->err);
    assert_ok(exti__private_symbols_build(im, &map, &t->err), &t->err);
    exti_image_free(im);
    return map;
}

static char *rename_all(struct test *t, const char *path, const struct exti_private_symbols *map)
{
    const struct exti_rewrite_opts opts = {
        .size = sizeof opts, .renames = map->renames, .rename_count = map->count};
    char *copy = test_format(t, "%s.copy", path);

    assert_ok(exti_rewrite(path, copy, &opts, &t->err), &t->err);
    return copy;
}

static void every_symbol_is_found_by_its_private_name(void **state)
{
    struct test *t = *state;
    char same[16];
    uint32_t next = 0;

    assert_false(exti__hash_preserving_name(name_of(t, 0), &next, same));
    assert_false(exti__hash_preserving_name(name_of(t, 5), &next, same));
    for (size_t k = 0; k < ARRAY_SIZE(styles); k++) {
        char *path = build_api(t, test_format(t, "libapi-%s.so", styles[k]), 0,
                               test_format(t, "-Wl,--hash-style=%s", styles[k]));
        struct exti_private_symbols map = map_of(t, path);
        char *copy = rename_all(t, path, &map);

        tools_read(t, path, copy, strcmp(styles[k], "sysv") != 0, true);
        loader_finds(t, copy, 0, &map);
        exti__private_symbols_free(&map);
    }
}

/* A library that defines some of the API's names, too, has another number of buckets, so that its
 * symbols' new hashes belong to others. */
static void another_library_with_some_of_the_names_follows(void **state)
{
    struct test *t = *state;

    for (size_t k = 0; k < ARRAY_SIZE(styles); k++) {
        char *flags = test_format(t, "-Wl,--hash-style=%s -DR_395_395=R_NaN", styles[k]);
        char *api = build_api(t, "libapi.so", 0, "");
        struct exti_private_symbols map = map_of(t, api);
        char *path = build_api(t, test_format(t, "libsome-%s.so", styles[k]), 300, flags);
        char *copy = rename_all(t, path, &map);
        void *h;
        int (*nan)(void);

        tools_read(t, path, copy, strcmp(styles[k], "sysv") != 0, false);
        h = dlopen(copy, RTLD_NOW | RTLD_LOCAL);
        assert_non_null(h);
        nan = (int (*)(void))dlsym(h, exti__private_symbol_find(&map, "R_NaN"));
        assert_non_null(nan);
        assert_int_equal(nan(), 395);
        assert_null(dlsym(h, "R_NaN"));
        for (int i = 300; i < 395; i++)
            assert_non_null(dlsym(h, exti__private_symbol_find(&map, name_of(t, i))));
        dlclose(h);
        exti__private_symbols_free(&map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(every_symbol_is_found_by_its_private_name),
        exti_test(another_library_with_some_of_the_names_follows),
    };

    return cmocka_run_group_tests_name("elf_inputs/private_names", tests, NULL, NULL);
}
