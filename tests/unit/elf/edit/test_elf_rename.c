#include "tests/unit/elf/elf_copy.h"

#define OPTS(list)                                                                                 \
    {                                                                                              \
        .size = sizeof(struct exti_rewrite_opts), .renames = (list),                               \
        .rename_count = ARRAY_SIZE(list)                                                           \
    }

static const char *const hash_styles[] = {"gnu", "sysv", "both"};

static bool finds(void *h, const char *name)
{
    dlerror();
    return dlsym(h, name) != NULL;
}

/* Py and QX have the same weight in the GNU hash: 33 * 'P' + 'y' == 33 * 'Q' + 'X'. */
static void hash_preserving_rename_changes_two_bytes_a_name(void **state)
{
    static const struct exti_rename list[] = {
        {"PyOne", "QXOne"}, {"_PyTwo", "_QXTwo"}, {"PyAbsent", "QXAbsent"}};
    static const struct exti_rewrite_opts opts = OPTS(list);
    static const char source[] = "int PyOne(void) { return 1; }\n"
                                 "int _PyTwo(void) { return 2 * PyOne(); }\n"
                                 "int other(void) { return 3; }\n";
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(hash_styles); i++) {
        char *path = build(t, test_format(t, "%s.so", hash_styles[i]), source,
                           test_format(t, "-Wl,--hash-style=%s", hash_styles[i]));
        struct edited e = edit(t, path, &opts);
        void *h;

        assert_int_equal(e.size, e.was);
        if (i == 0)
            assert_int_equal(e.patches, 2);
        h = load_object(e.path);
        assert_int_equal(call(h, "QXOne"), 1);
        assert_int_equal(call(h, "_QXTwo"), 2);
        assert_int_equal(call(h, "other"), 3);
        assert_false(finds(h, "PyOne"));
        assert_false(finds(h, "_PyTwo"));
        dlclose(h);
    }
}

/* GNU ld keeps "PyShared" as the end of "longPyShared". */
static void name_inside_another_moves_unless_both_change_alike(void **state)
{
    static const struct exti_rename one[] = {{"PyShared", "QXShared"}};
    static const struct exti_rename both[] = {{"PyShared", "QXShared"},
                                              {"longPyShared", "longQXShared"}};
    static const struct exti_rewrite_opts only_one = OPTS(one), alike = OPTS(both);
    struct test *t = *state;
    char *path = build(t, "tail.so",
                       "int PyShared(void) { return 1; }\nint longPyShared(void) { return 2; }\n",
                       "-Wl,-O2");
    struct edited e = edit(t, path, &only_one);
    void *h = load_object(e.path);

    assert_int_equal(call(h, "QXShared"), 1);
    assert_int_equal(call(h, "longPyShared"), 2);
    assert_false(finds(h, "longQXShared"));
    dlclose(h);
    e = edit(t, path, &alike);
    assert_int_equal(e.size, e.was);
    assert_int_equal(e.patches, 1);
    h = load_object(e.path);
    assert_int_equal(call(h, "QXShared"), 1);
    assert_int_equal(call(h, "longQXShared"), 2);
    dlclose(h);
}

static void undefined_symbols_get_new_names(void **state)
{
    static const struct exti_rename list[] = {{"abs", "labs_too"}, {"rand", "random"}};
    static const struct exti_rewrite_opts opts = OPTS(list);
    struct test *t = *state;
    struct edited e = edit(t,
                           build(t, "u.so",
                                 "int rand(void); int abs(int);\n"
                                 "int f(void) { return rand() + abs(rand()); }\n",
                                 "-fno-builtin"),
                           &opts);
    char *symbols = test_must_run(t, "readelf", "-W", "--dyn-syms", e.path, NULL);

    assert_contains(symbols, " random@GLIBC");
    assert_contains(symbols, " labs_too@");
    assert_null(strstr(symbols, " abs@"));
    assert_null(strstr(symbols, " rand@"));
}

/* The real loader finds hundreds of definitions whose new names belong to other buckets. */
static void definitions_with_other_hashes_are_found(void **state)
{
    enum { COUNT = 300 };
    struct test *t = *state;
    struct exti_rename *list = test_alloc(t, COUNT * sizeof *list);
    struct exti_rewrite_opts opts = {
        .size = sizeof opts, .renames = list, .rename_count = COUNT / 2};
    char *source = test_alloc(t, COUNT * 64);

    for (int i = 0; i < COUNT; i++) {
        sprintf(source + strlen(source), "int value_%d(void) { return %d; }\n", i, i);
        list[i] = (struct exti_rename){test_format(t, "value_%d", i),
                                       test_format(t, "another_%d_value", i)};
    }
    for (size_t k = 0; k < ARRAY_SIZE(hash_styles); k++) {
        char *path = build(t, test_format(t, "many-%s.so", hash_styles[k]), source,
                           test_format(t, "-Wl,--hash-style=%s", hash_styles[k]));
        struct edited e = edit(t, path, &opts);
        void *h = load_object(e.path);

        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(call(h, i < COUNT / 2 ? list[i].to : list[i].from), i);
            assert_false(finds(h, i < COUNT / 2 ? list[i].from : list[i].to));
        }
        dlclose(h);
    }
}

static void new_name_in_use_is_refused(void **state)
{
    static const struct exti_rename taken[] = {{"one", "two"}};
    static const struct exti_rename joined[] = {{"one", "three"}, {"two", "three"}};
    static const struct exti_rename chained[] = {{"one", "two"}, {"two", "three"}};
    static const struct exti_rename torn[] = {{"one", "three"}, {"one", "four"}};
    static const struct exti_rename blank[] = {{"one", ""}};
    static const struct exti_rewrite_opts use = OPTS(taken), join = OPTS(joined),
                                          chain = OPTS(chained), tear = OPTS(torn),
                                          empty = OPTS(blank);
    struct test *t = *state;
    char *path = build(t, "c.so", "int one, two;", "");

    assert_refused(t, path, &use, EXTI_E_UNSUPPORTED, "'two'");
    assert_refused(t, path, &join, EXTI_E_UNSUPPORTED, "'three'");
    assert_refused(t, path, &chain, EXTI_E_ARG, "'two'");
    assert_refused(t, path, &tear, EXTI_E_ARG, "'four'");
    assert_refused(t, path, &empty, EXTI_E_ARG, "empty");
}

static void version_nodes_and_absent_names_are_skipped(void **state)
{
    static const struct exti_rename list[] = {{"NODE_1", "NODE_2"}, {"gone", "went"}};
    static const struct exti_rewrite_opts opts = OPTS(list);
    struct test *t = *state;
    struct edited e;

    test_write(test_path(t, "map"), "NODE_1 { one; };", 16);
    e = edit(t,
             build(t, "n.so", "int one;",
                   test_format(t, "-Wl,--version-script='%s'", test_path(t, "map"))),
             &opts);
    assert_int_equal(e.patches, 0);
}

static void mangled_hash_tables_are_reported(void **state)
{
    static const struct exti_rename list[] = {{"one", "quite_another"}, {"two", "as_well"},
                                              {"three", "third"},       {"four", "fourth"},
                                              {"five", "fifth"},        {"six", "sixth"}};
    static const struct exti_rewrite_opts opts = OPTS(list);
    struct test *t = *state;
    char *path = build(t, "s.so", "int one, two, three, four, five, six;", "-Wl,--hash-style=sysv");
    char *text = test_must_run(
        t, "sh", "-c",
        test_format(t, "readelf -SW '%s' | sed 's/.*\\]//' | awk '/ HASH /{print $4,$5}'", path),
        NULL);
    unsigned offset, size;
    size_t n;
    char *bytes = test_read(t, path, &n);
    uint32_t one = 1;

    assert_int_equal(sscanf(text, "%x %x", &offset, &size), 2);
    /* Every chain word leads to symbol 1. */
    for (unsigned at = offset + 8; at + 4 <= offset + size; at += 4)
        memcpy(bytes + at, &one, 4);
    test_write(path, bytes, n);
    assert_refused(t, path, &opts, EXTI_E_FORMAT, "DT_HASH: the chain of bucket");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(hash_preserving_rename_changes_two_bytes_a_name),
        exti_test(name_inside_another_moves_unless_both_change_alike),
        exti_test(undefined_symbols_get_new_names),
        exti_test(definitions_with_other_hashes_are_found),
        exti_test(new_name_in_use_is_refused),
        exti_test(version_nodes_and_absent_names_are_skipped),
        exti_test(mangled_hash_tables_are_reported),
    };

    return cmocka_run_group_tests_name("elf/elf_rename", tests, NULL, NULL);
}
