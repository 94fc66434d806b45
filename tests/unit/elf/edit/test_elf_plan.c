#define _GNU_SOURCE /* dlinfo */
#include "tests/unit/elf/elf_copy.h"

#include <link.h>

#include "tests/unit/elf/elf_toy.h"

#define OPTS .size = sizeof(struct exti_rewrite_opts)

static const char answer[] = "int answer(void) { return 42; }\n";

static void readelf_sees_the_new_id_and_dependency(void **state)
{
    static const struct exti_needed needed[] = {{NULL, "libm.so.6", EXTI_NEEDED_LAST}};
    static const struct exti_rewrite_opts opts = {OPTS, .id = "answer.c01.so", .needed = needed,
                                                  .needed_count = 1};
    struct test *t = *state;
    struct edited e = edit(t, build(t, "a.so", answer, ""), &opts);

    assert_string_equal(dynamic_strings(t, e.path),
                        "NEEDED libc.so.6\nNEEDED libm.so.6\nSONAME answer.c01.so\n");
    assert_int_equal(call(load_object(e.path), "answer"), 42);
}

static void id_of_the_same_length_is_overwritten(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .id = "libanswer.so.c"};
    struct test *t = *state;
    struct edited e = edit(t, build(t, "a.so", answer, "-Wl,-soname,libanswer.so.1"), &opts);

    assert_int_equal(e.size, e.was);
    assert_int_equal(e.patches, 1);
    assert_contains(dynamic_strings(t, e.path), "SONAME libanswer.so.c\n");
}

/* The name is also the name of a version: overwriting it would rename the version. */
static void shared_id_is_not_overwritten(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .id = "libanswer.so.c"};
    struct test *t = *state;
    struct edited e;

    test_write(test_path(t, "map"), "libanswer.so.1 { answer; };", 27);
    e = edit(t,
             build(t, "a.so", answer,
                   test_format(t, "-Wl,-soname,libanswer.so.1 -Wl,--version-script='%s'",
                               test_path(t, "map"))),
             &opts);
    assert_contains(dynamic_strings(t, e.path), "SONAME libanswer.so.c\n");
    assert_contains(readelf(t, "-V", e.path), "Name: libanswer.so.1");
    assert_int_equal(call(load_object(e.path), "answer"), 42);
}

static char *with_libraries(struct test *t)
{
    return build(t, "n.so", answer, "-lm -l:libdl.so.2 -l:libpthread.so.0");
}

static void needed_libraries_have_the_requested_order(void **state)
{
    static const struct exti_needed needed[] = {
        {NULL, "libm.so.6", EXTI_NEEDED_FIRST},
        {"libdl.so.2", "librt.so.1", EXTI_NEEDED_LAST},
        {NULL, "libutil.so.1", EXTI_NEEDED_FIRST},
        {NULL, "libresolv.so.2", EXTI_NEEDED_LAST},
    };
    static const struct exti_rewrite_opts opts = {OPTS, .needed = needed, .needed_count = 4};
    struct test *t = *state;
    char *path = with_libraries(t);
    struct edited e;

    assert_string_equal(
        dynamic_strings(t, path),
        "NEEDED libm.so.6\nNEEDED libdl.so.2\nNEEDED libpthread.so.0\nNEEDED libc.so.6\n");
    e = edit(t, path, &opts);
    assert_string_equal(dynamic_strings(t, e.path),
                        "NEEDED libutil.so.1\nNEEDED libm.so.6\nNEEDED librt.so.1\n"
                        "NEEDED libpthread.so.0\nNEEDED libc.so.6\nNEEDED libresolv.so.2\n");
    assert_int_equal(call(load_object(e.path), "answer"), 42);
}

static void removed_library_leaves_no_empty_entry(void **state)
{
    static const struct exti_needed needed[] = {{"libm.so.6", NULL, 0}, {NULL, "libutil.so.1", 0}};
    static const struct exti_rewrite_opts opts = {OPTS, .needed = needed, .needed_count = 1};
    struct exti_rewrite_opts twice = opts;
    struct test *t = *state;
    char *path = with_libraries(t), *out = test_format(t, "%s.new", path);
    struct exti_plan plan;
    uint8_t *image;
    size_t n;

    /* edit() cannot serve here, because removing the library again is an error. */
    image = (uint8_t *)test_read(t, path, &n);
    exti__plan_init(&plan, 1 << 20);
    assert_ok(plan_file(t, path, &opts, &plan), &t->err);
    assert_int_equal(plan.tail.n, 0);
    exti__plan_apply(&plan, image, n);
    exti__plan_free(&plan);
    test_write(out, image, n);
    assert_string_equal(dynamic_strings(t, out),
                        "NEEDED libdl.so.2\nNEEDED libpthread.so.0\nNEEDED libc.so.6\n");
    assert_int_equal(call(load_object(out), "answer"), 42);
    assert_refused(t, out, &opts, EXTI_E_ARG, "no 'libm.so.6' to remove");

    /* A new library takes the freed entry. */
    twice.needed_count = 2;
    image = (uint8_t *)test_read(t, path, &n);
    exti__plan_init(&plan, 1 << 20);
    assert_ok(plan_file(t, path, &twice, &plan), &t->err);
    exti__plan_free(&plan);
}

/* Where the loader finds the library. */
static const char *path_of_library(const char *name)
{
    struct link_map *map = NULL;

    assert_int_equal(dlinfo(load_object(name), RTLD_DI_LINKMAP, &map), 0);
    return map->l_name;
}

static void needed_versions_follow_their_library(void **state)
{
    const struct exti_needed needed[] = {{"libm.so.6", path_of_library("libm.so.6"), 0}};
    static const struct exti_needed removed[] = {{"libm.so.6", NULL, 0}};
    const struct exti_rewrite_opts opts = {OPTS, .needed = needed, .needed_count = 1};
    static const struct exti_rewrite_opts without = {OPTS, .needed = removed, .needed_count = 1};
    static const char source[] =
        "#include <math.h>\n"
        "int power(void) { volatile double x = 2; return (int)pow(x, 5); }\n";
    struct test *t = *state;
    char *path = build(t, "v.so", source, "-lm");
    struct edited e;

    assert_refused(t, path, &without, EXTI_E_UNSUPPORTED, "libm.so.6");
    e = edit(t, path, &opts);
    assert_contains(readelf(t, "-V", e.path), test_format(t, "File: %s", needed[0].to));
    assert_int_equal(call(load_object(e.path), "power"), 32);
}

static void search_path_keeps_its_kind_and_its_meaning(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .path_prepend = "/ctx:$ORIGIN",
                                                  .origin = "/usr/lib/orig"};
    static const struct exti_rewrite_opts set = {OPTS, .path_set = "/only:$ORIGIN/x",
                                                 .origin = "/usr/lib/orig"};
    static const struct exti_rewrite_opts none = {OPTS, .path_set = ""};
    static const char *const kinds[][2] = {{"--enable-new-dtags", "RUNPATH"},
                                           {"--disable-new-dtags", "RPATH"}};
    struct test *t = *state;

    for (size_t i = 0; i < 2; i++) {
        char *path = build(
            t, kinds[i][1], answer,
            test_format(t, "-Wl,%s,-rpath,'$ORIGIN/lib:${ORIGIN}:/a$ORIGINAL:/b'", kinds[i][0]));
        struct edited e = edit(t, path, &opts);

        assert_contains(dynamic_strings(t, e.path),
                        test_format(t,
                                    "\n%s /ctx:$ORIGIN:/usr/lib/orig/lib:/usr/lib/orig:"
                                    "/a$ORIGINAL:/b\n",
                                    kinds[i][1]));
        e = edit(t, path, &set);
        assert_contains(dynamic_strings(t, e.path),
                        test_format(t, "\n%s /only:$ORIGIN/x\n", kinds[i][1]));
        e = edit(t, path, &none);
        assert_string_equal(dynamic_strings(t, e.path), "NEEDED libc.so.6\n");
        assert_int_equal(e.size, e.was);
    }
    assert_contains(dynamic_strings(t, edit(t, build(t, "p.so", answer, ""), &opts).path),
                    "\nRUNPATH /ctx:$ORIGIN\n");
}

static void origin_with_a_colon_is_refused(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .origin = "/a:b"};
    struct test *t = *state;

    assert_refused(t, build(t, "o.so", answer, "-Wl,-rpath,'$ORIGIN'"), &opts, EXTI_E_UNSUPPORTED,
                   "/a:b");
    edit(t, build(t, "p.so", answer, "-Wl,-rpath,/lib"), &opts);
}

static char *repeated(struct test *t, const char *text, size_t n)
{
    char *out = test_alloc(t, strlen(text) * n + 1);

    for (size_t i = 0; i < n; i++)
        memcpy(out + i * strlen(text), text, strlen(text));
    return out;
}

/* A partly translated path would fail in the check with a less helpful message. */
static void endless_search_path_is_refused(void **state)
{
    struct exti_rewrite_opts opts = {OPTS, .origin = "/a"};
    struct test *t = *state;
    char *path = build(t, "long.so", answer,
                       test_format(t, "-Wl,-rpath,'%s'", repeated(t, "$ORIGIN:", 8192)));

    assert_refused(t, path, &opts, EXTI_E_UNSUPPORTED, "search path has 65536 bytes or more");
    path = build(t, "short.so", answer,
                 test_format(t, "-Wl,-rpath,'%s'", repeated(t, "$ORIGIN:", 800)));
    edit(t, path, &opts);

    opts.origin = repeated(t, "/a", 16384);
    assert_refused(t, path, &opts, EXTI_E_NOSPACE, "search paths exceed 16777216 bytes");
}

static void origin_in_a_needed_name_is_translated(void **state)
{
    static const struct exti_needed needed[] = {{NULL, "$ORIGIN/own.so", EXTI_NEEDED_LAST}};
    static const struct exti_rewrite_opts opts = {OPTS, .needed = needed, .needed_count = 1,
                                                  .origin = "/usr/lib/orig"};
    struct test *t = *state;
    char *dep = build(t, "dep.so", answer, "-Wl,-soname,'$ORIGIN/dep.so'");
    struct edited e = edit(t, build(t, "o.so", "int x;", test_format(t, "'%s'", dep)), &opts);

    assert_contains(dynamic_strings(t, e.path), "NEEDED /usr/lib/orig/dep.so\n");
    assert_contains(dynamic_strings(t, e.path), "NEEDED $ORIGIN/own.so\n");
}

static void flags_are_set_and_cleared(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .flags = EXTI_RW_SYMBOLIC |
                                                                 EXTI_RW_CLEAR_NODELETE};
    static const char *const link[] = {"-Wl,-z,nodelete", "-Wl,-z,nodelete -Wl,-z,now",
                                       "-Wl,-z,nodelete -Wl,-Bsymbolic"};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(link); i++) {
        char *path = build(t, test_format(t, "f%zu.so", i), answer, link[i]);
        struct edited e = edit(t, path, &opts);
        char *now = readelf(t, "-d", e.path);

        assert_int_equal(e.size, e.was);
        assert_non_null(strstr(readelf(t, "-d", path), "NODELETE"));
        assert_null(strstr(now, "NODELETE"));
        assert_non_null(strstr(now, "SYMBOLIC"));
    }
}

static void unique_symbols_become_global_in_both_tables(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .flags = EXTI_RW_CLEAR_UNIQUE};
    struct test *t = *state;
    char *path = build(t, "u.so",
                       "asm(\".data\\n.globl one\\n.type one, @gnu_unique_object\\n"
                       ".size one, 4\\none: .long 1\\n.text\");",
                       "");
    struct edited e = edit(t, path, &opts);

    assert_int_equal(e.size, e.was);
    assert_int_equal(e.patches, 2);
    assert_non_null(strstr(readelf(t, "-sW", path), " UNIQUE "));
    assert_null(strstr(readelf(t, "-sW", e.path), " UNIQUE "));
}

static void programs_are_refused(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS, .id = "x"};
    struct test *t = *state;
    char *path = test_path(t, "main");

    test_must_run(t, "sh", "-c",
                  test_format(t,
                              "echo 'int main(void) { return 0; }' | ${CC:-cc} -fPIE -pie -x c -o "
                              "'%s' -",
                              path),
                  NULL);
    assert_refused(t, path, &opts, EXTI_E_UNSUPPORTED, "program");
}

static void no_edit_is_an_empty_plan(void **state)
{
    static const struct exti_rewrite_opts opts = {OPTS};
    struct test *t = *state;
    struct edited e = edit(t, build(t, "a.so", answer, ""), &opts);

    assert_int_equal(e.patches, 0);
    assert_int_equal(e.size, e.was);
}

/* Hand-made files of either class and byte order; the read operation shows the result. */
static void every_kind_of_file_is_edited(void **state)
{
    static const struct exti_needed needed[] = {{NULL, "libtoy-api.so.1", EXTI_NEEDED_FIRST},
                                                {"libc.so.6", "libc-of-the-context.so", 0}};
    static const struct exti_rename renames[] = {{"export", "exported_anew"}, {"import", "impart"}};
    static const struct exti_rewrite_opts opts = {OPTS,
                                                  .id = "a-longer-name.so",
                                                  .needed = needed,
                                                  .needed_count = 2,
                                                  .renames = renames,
                                                  .rename_count = 2,
                                                  .origin = "/orig",
                                                  .flags = 7};
    struct test *t = *state;
    struct exti_image im = {0};

    for (int kind = 0; kind < 4; kind++) {
        struct elf_toy *toy = test_alloc(t, sizeof *toy);
        char *path = test_format(t, "%s%d.so", test_path(t, "toy"), kind);
        struct exti_plan plan;
        uint8_t *out;
        size_t size;

        elf_toy_make(toy, kind & 1, kind & 2);
        test_write(path, toy->b, toy->n);
        exti__plan_init(&plan, 1 << 20);
        assert_ok(plan_file(t, path, &opts, &plan), &t->err);
        size = (size_t)exti__plan_size(&plan, toy->n);
        out = test_alloc(t, size);
        memcpy(out, toy->b, toy->n);
        exti__plan_apply(&plan, out, toy->n);
        exti__plan_free(&plan);
        assert_ok(exti__elf_format.read(exti__span(out, size), &im, &t->err), &t->err);
        assert_string_equal(im.info.id, "a-longer-name.so");
        assert_string_equal(im.info.runpath, "/orig/lib");
        assert_string_equal(im.needed[0].name, "libtoy-api.so.1");
        assert_string_equal(im.needed[1].name, "libc-of-the-context.so");
        assert_string_equal(im.symbols[0].name, "impart");
        assert_string_equal(im.symbols[0].version, "V1");
        assert_string_equal(im.symbols[1].name, "exported_anew");
        assert_string_equal(im.symbols[1].version, "V2");
        assert_int_equal(im.info.flags, EXTI_IMAGE_SYMBOLIC | EXTI_IMAGE_BIND_NOW);
        exti__image_clear(&im);
    }
}

static void running_out_of_memory_is_reported(void **state)
{
    static const struct exti_needed needed[] = {{NULL, "libm.so.6", EXTI_NEEDED_FIRST},
                                                {"libc.so.6", "libc-of-the-context.so", 0}};
    static const struct exti_rename renames[] = {{"answer", "reply_to_all"}, {"rand", "dnar"}};
    static const struct exti_rewrite_opts opts = {OPTS,
                                                  .id = "a-much-longer-name.so",
                                                  .needed = needed,
                                                  .needed_count = 2,
                                                  .renames = renames,
                                                  .rename_count = 2,
                                                  .path_prepend = "/ctx",
                                                  .origin = "/orig",
                                                  .flags = 7};
    struct test *t = *state;
    char *source = test_format(t, "int rand(void); int answer(void) { return rand(); }");
    size_t n;

    /* With one symbol the hash tables have one bucket; with many a rename changes buckets. */
    for (int symbols = 1; symbols <= 40; symbols += 39) {
        int rc = EXTI_E_NOMEM;
        const char *bytes;

        for (int i = 1; i < symbols; i++)
            source = test_format(t, "%s int v%d;", source, i);
        bytes = test_read(t,
                          build(t, test_format(t, "m%d.so", symbols), source,
                                "-Wl,--hash-style=both,-rpath,'$ORIGIN'"),
                          &n);
        for (long i = 0; rc == EXTI_E_NOMEM; i++) {
            struct exti_plan plan;

            assert_true(i < 300);
            exti__plan_init(&plan, 1 << 20);
            exti__mem_fail_after(i);
            rc = exti__elf_format.plan(exti__span(bytes, n), &(struct exti_request){.opts = &opts},
                                       &plan, &t->err);
            exti__mem_fail_after(-1);
            exti__plan_free(&plan);
            if (rc)
                assert_exti(rc, EXTI_E_NOMEM, &t->err, EXTI_NO_OFFSET);
        }
        assert_ok(rc, &t->err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(readelf_sees_the_new_id_and_dependency),
        exti_test(id_of_the_same_length_is_overwritten),
        exti_test(shared_id_is_not_overwritten),
        exti_test(needed_libraries_have_the_requested_order),
        exti_test(removed_library_leaves_no_empty_entry),
        exti_test(needed_versions_follow_their_library),
        exti_test(search_path_keeps_its_kind_and_its_meaning),
        exti_test(origin_with_a_colon_is_refused),
        exti_test(endless_search_path_is_refused),
        exti_test(origin_in_a_needed_name_is_translated),
        exti_test(flags_are_set_and_cleared),
        exti_test(unique_symbols_become_global_in_both_tables),
        exti_test(programs_are_refused),
        exti_test(no_edit_is_an_empty_plan),
        exti_test(every_kind_of_file_is_edited),
        exti_test(running_out_of_memory_is_reported),
    };

    return cmocka_run_group_tests_name("elf/elf_plan", tests, NULL, NULL);
}
