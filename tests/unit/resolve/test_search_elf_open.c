/* What look-ups learn from the running system. */
#include "loader/resolve/search_host.h"
#include "tests/unit/resolve/search_elf_toy.h"

static void facts_about_the_loader_agree_with_it(void **state)
{
    struct fixture *f = *state;
    struct test *t = f->t;
    const char *const *dirs;
    char *out, *platform;

    skip_under_valgrind();
    open_search(f, (struct exti_elf_search_opts){0});
    assert_non_null(f->s->loader);
    if (test_run(t, &out, f->s->loader, "--list-diagnostics", NULL) != 0)
        skip_because("this loader has no --list-diagnostics");
    dirs = exti__elf_search_dirs(f->s);
    for (size_t i = 0; dirs[i]; i++)
        assert_contains(out, test_format(t, "path.system_dirs[0x%zx]=\"%s/\"", i, dirs[i]));
    assert_true(dirs[0] && !strstr(out, test_format(t, "path.system_dirs[0x%d]", 4 + !dirs[3])));
    assert_contains(out, test_format(t, "dl_dst_lib=\"%s\"", f->s->lib));
    platform = test_format(t, "dl_platform=\"%s\"", f->s->platform);
    assert_contains(out, platform);
    out = test_must_run(t, f->s->loader, "--help", NULL);
#ifdef __x86_64__
    assert_contains(out, test_format(t, "%s (supported, searched)",
                                     f->s->hwcaps[0] ? f->s->hwcaps[0] : "x86_64"));
#else
    assert_null(f->s->hwcaps[0]);
    assert_contains(out, "No subdirectories of glibc-hwcaps directories are searched");
#endif
}

static void bad_options_are_reported(void **state)
{
    struct fixture *f = *state;
    struct exti_elf_search_opts o = {.cache_file = test_path(f->t, "none")};

    open_search(f, o); /* a system may have no cache */
    test_write(o.cache_file, "text", 4);
    exti__elf_search_close(f->s);
    f->s = NULL;
    open_search(f, o); /* and a file that is not a cache is ignored */
    exti__elf_search_close(f->s);
    f->s = NULL;
    o = (struct exti_elf_search_opts){.loader = test_path(f->t, "no-loader")};
    assert_int_equal(exti__elf_search_open(&o, &f->s, &f->t->err), EXTI_E_IO);
    o = (struct exti_elf_search_opts){.program = test_path(f->t, "no-program")};
    assert_int_equal(exti__elf_search_open(&o, &f->s, &f->t->err), EXTI_E_IO);
    assert_null(f->s);
}

/* Changes that the process makes to its environment do not count, as for ld.so. */
static void the_environment_at_the_start_counts(void **state)
{
    static const char environment[] = "A=1\0LD_LIBRARY_PATHS=x\0LD_LIBRARY_PATH=/a:/b\0Z=\0tail";
    struct fixture *f = *state;
    const char *start = getenv("LD_LIBRARY_PATH");
    char *old = start ? test_format(f->t, "%s", start) : NULL, *found;
    const size_t n = sizeof environment - 1;

    assert_string_equal(exti__host_setting(environment, n, "LD_LIBRARY_PATH"), "/a:/b");
    assert_string_equal(exti__host_setting(environment, n, "Z"), "");
    assert_null(exti__host_setting(environment, n, "LD_LIBRARY"));
    assert_null(exti__host_setting(environment, n, "tail")); /* has no end */
    assert_null(exti__host_setting(environment, 0, "A"));
    setenv("LD_LIBRARY_PATH", f->t->dir, 1);
    assert_ok(exti__host_library_path(&found, &f->t->err), &f->t->err);
    if (old) {
        assert_string_equal(found, old);
        setenv("LD_LIBRARY_PATH", old, 1);
    } else {
        assert_null(found);
        unsetenv("LD_LIBRARY_PATH");
    }
    exti__free(found);
    exti__elf_search_close(f->s);
    f->s = NULL;
    assert_ok(exti__elf_search_open_running(&f->s, &f->t->err), &f->t->err);
    assert_non_null(f->s->program_path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        search_test(facts_about_the_loader_agree_with_it),
        search_test(bad_options_are_reported),
        search_test(the_environment_at_the_start_counts),
    };

    return cmocka_run_group_tests_name("resolve/search_elf_open", tests, NULL, NULL);
}
