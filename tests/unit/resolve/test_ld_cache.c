/* The cache as ldconfig writes it. */
#include <unistd.h>

#include "loader/resolve/ld_cache.h"
#include "tests/unit/resolve/search_elf_toy.h"

/* What this machine's libraries are in a cache, and how ldconfig says that (glibc's elf/cache.c). */
#ifdef __aarch64__
#define KIND 0xa03
#define KIND_IN_LDCONFIG " (libc6,AArch64)"
#else
#define KIND 0x303
#define KIND_IN_LDCONFIG " (libc6,x86-64)"
#endif

/* A cache of %/cache and %/cache/glibc-hwcaps in one of ldconfig's formats. */
static const char *make_cache(struct fixture *f, const char *format)
{
    struct test *t = f->t;
    const char *conf = test_path(t, "conf"), *dir = test_path(t, "cache"),
               *out = test_format(t, "%s/cache.%s", t->dir, format);

    make_leaf(f, "cache");
    toy_lib(t, "cache/libleaf10.so.2", "-Wl,-soname,libleaf10.so.2");
    toy_lib(t, "cache/libleaf9.so.2", "-Wl,-soname,libleaf9.so.2");
    make_leaf(f, "cache/glibc-hwcaps/x86-64-v2");
    make_leaf(f, "cache/glibc-hwcaps/x86-64-v3");
    make_leaf(f, "cache/glibc-hwcaps/x86-64-v4");
    test_write(conf, dir, strlen(dir));
    test_must_run(t, "/sbin/ldconfig", "-X", "-c", format, "-C", out, "-f", conf, NULL);
    return out;
}

static void the_cache_is_read_in_each_format(void **state)
{
    struct fixture *f = *state;
    static const char *const formats[] = {"new", "compat", "old"};
    static const char *const v3[] = {"x86-64-v3", "x86-64-v2", NULL};
    const char *file = toy_lib(f->t, "a.so", "");

    if (access("/sbin/ldconfig", X_OK) != 0)
        skip_because("there is no /sbin/ldconfig");
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        const char *cache = make_cache(f, formats[i]);

        open_search(f, (struct exti_elf_search_opts){
                           .cache_file = cache, .dirs = no_dirs, .hwcaps = no_dirs});
        if (i <
            2) /* ldconfig lists files of subfolders in the old table, too, without marking them */
            assert_string_equal(find_for(f, file, "libleaf.so"),
                                test_path(f->t, "cache/libleaf.so"));
        assert_string_equal(find_for(f, file, "libleaf9.so.2"),
                            test_path(f->t, "cache/libleaf9.so.2"));
        assert_string_equal(find_for(f, file, "libleaf10.so.2"),
                            test_path(f->t, "cache/libleaf10.so.2"));
        assert_null(find_for(f, file, "libleaf11.so.2"));
        if (i == 2)
            continue;
        open_search(
            f, (struct exti_elf_search_opts){.cache_file = cache, .dirs = no_dirs, .hwcaps = v3});
        assert_string_equal(find_for(f, file, "libleaf.so"),
                            test_path(f->t, "cache/glibc-hwcaps/x86-64-v3/libleaf.so"));
    }
}

static void damaged_caches_are_refused_or_bounded(void **state)
{
    struct fixture *f = *state;
    static const char *const formats[] = {"new", "compat", "old"};
    static const char *const v2[] = {"x86-64-v2", NULL};
    struct exti_ld_cache c;
    const char *path;

    if (access("/sbin/ldconfig", X_OK) != 0)
        skip_because("there is no /sbin/ldconfig");
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        size_t n;
        const char *file = make_cache(f, formats[i]);
        char *whole = test_read(f->t, file, &n), *part;

        for (size_t k = 0; k < n;
             k++) { /* a separate block, so that tools notice a read past its end */
            part = malloc(k + 1);
            assert_non_null(part);
            memcpy(part, whole, k);
            if (!exti__ld_cache_open(exti__span(part, k), &c, &f->t->err))
                exti__ld_cache_find(&c, "libleaf.so", KIND, v2, &path, &f->t->err);
            memcpy(part, whole, k + 1);
            free(part);
        }
        for (size_t k = 0; k < n; k++)
            for (int bit = 0; bit < 8; bit += 7) {
                whole[k] = (char)(whole[k] ^ (1 << bit));
                if (!exti__ld_cache_open(exti__span(whole, n), &c, &f->t->err))
                    exti__ld_cache_find(&c, "libleaf.so", KIND, v2, &path, &f->t->err);
                whole[k] = (char)(whole[k] ^ (1 << bit));
            }
    }
    assert_exti(exti__ld_cache_open(exti__span("text", 4), &c, &f->t->err), EXTI_E_FORMAT,
                &f->t->err, 0);
    assert_says(&f->t->err, "glibc-ld.so.cache1.1");
    assert_exti(exti__ld_cache_open(exti__span("glibc-ld.so.cache1.1", 20), &c, &f->t->err),
                EXTI_E_FORMAT, &f->t->err, ANY_OFFSET);
}

/* Compares each name in the system's cache with the first line that ldconfig prints for it. */
static void the_systems_cache_agrees_with_ldconfig(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    char *out, *line, *next, *last = "";
    size_t names = 0;

    if (test_run(t, &out, "/sbin/ldconfig", "-p", NULL) != 0)
        skip_because("ldconfig -p fails");
    open_search(f, (struct exti_elf_search_opts){0});
    for (line = strchr(out, '\n'); line && *++line == '\t'; line = next) {
        char *name = line + 1, *end = strstr(name, " ("), *path = strstr(name, "=> ");
        const char *found = NULL;

        next = strchr(line, '\n');
        if (!end || !path || !next || strncmp(end, KIND_IN_LDCONFIG, strlen(KIND_IN_LDCONFIG)) != 0)
            continue;
        *end = *next = 0;
        if (strcmp(name, last) != 0) {
            assert_ok(exti__ld_cache_find(&f->s->cache, name, KIND, NULL, &found, &t->err),
                      &t->err);
            assert_non_null(found);
            assert_string_equal(found, path + 3);
            names++;
        }
        last = name;
        *next = '\n';
    }
    print_message("%zu names\n", names);
    assert_true(names > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        search_test(the_cache_is_read_in_each_format),
        search_test(damaged_caches_are_refused_or_bounded),
        search_test(the_systems_cache_agrees_with_ldconfig),
    };

    return cmocka_run_group_tests_name("resolve/ld_cache", tests, NULL, NULL);
}
