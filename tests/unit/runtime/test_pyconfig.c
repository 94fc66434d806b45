/* The table of PyConfig's members, and the guard against builds that it does not describe.
 * tests/runtime/test_layout.sh compares the table with CPython's headers. */
#include "tests/support/exti_test.h"

#include <string.h>

#include "runtime/pyconfig.h"

/* ---- the guard ---- */

static const struct pyrt_build stock = {.minor = 12};

/* What the initialisers below leave, as a build with another layout or other defaults would. */
static size_t written;
static const char *spoilt;
static int struct_offset_of_spoilt = -1;

static void init_config(void *config)
{
    static const char *const ones[] = {
        "use_environment",     "install_signal_handlers", "parse_argv",        "site_import",
        "write_bytecode",      "user_site_directory",     "configure_c_stdio", "buffered_stdio",
        "pathconfig_warnings", "_install_importlib",      "_init_main"};

    memset(config, 0, written);
    for (size_t i = 0; i < ARRAY_SIZE(ones); i++)
        *(int *)pyrt_field(config, stock, PYRT_INT, ones[i]) = 1;
    if (spoilt)
        *(int *)pyrt_field(config, stock, PYRT_INT, spoilt) += 1;
}

static int take_config(struct test *t, size_t size, const char *other)
{
    union pyrt_config config;

    written = size;
    spoilt = other;
    return pyrt_config_init(&config, stock, init_config, &t->err);
}

static void a_stock_config_is_taken(void **state)
{
    assert_ok(take_config(*state, pyrt_config_size(stock), NULL), &((struct test *)*state)->err);
}

static void a_longer_or_shorter_config_is_refused(void **state)
{
    struct test *t = *state;
    const size_t size = pyrt_config_size(stock);

    assert_exti(take_config(t, size + 8, NULL), EXTI_E_LOAD, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, test_format(t,
                                     "PyConfig of this CPython 3.12 build has %zu bytes, a stock "
                                     "one has %zu",
                                     size + 8, size));
    assert_exti(take_config(t, size - 8, NULL), EXTI_E_LOAD, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, test_format(t, "build has %zu bytes", size - 8));
}

static void other_defaults_are_refused(void **state)
{
    static const char *const names[] = {"use_environment", "site_import",
                                        "module_search_paths_set"};
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        assert_exti(take_config(t, pyrt_config_size(stock), names[i]), EXTI_E_LOAD, &t->err,
                    EXTI_NO_OFFSET);
        assert_says(&t->err, test_format(t, "PyConfig.%s of this CPython 3.12 build is", names[i]));
    }
}

static void init_preconfig(void *config)
{
    struct pyrt_preconfig pre = {.use_environment = 1, .configure_locale = 1, .parse_argv = 1};

    if (struct_offset_of_spoilt >= 0)
        memset((char *)&pre + struct_offset_of_spoilt, 0, sizeof(int));
    memset(config, 0, written);
    memcpy(config, &pre, written < sizeof pre ? written : sizeof pre);
}

static int take_preconfig(struct test *t, size_t size, int other)
{
    struct pyrt_preconfig pre = {.dev_mode = 77};
    int rc;

    written = size;
    struct_offset_of_spoilt = other;
    rc = pyrt_preconfig_init(&pre, init_preconfig, &t->err);
    assert_int_equal(pre.dev_mode, rc == 0 ? 0 : 77);
    return rc;
}

static void only_a_stock_preconfig_is_taken(void **state)
{
    static const size_t ones[] = {offsetof(struct pyrt_preconfig, use_environment),
                                  offsetof(struct pyrt_preconfig, configure_locale),
                                  offsetof(struct pyrt_preconfig, parse_argv)};
    const size_t size = sizeof(struct pyrt_preconfig);
    struct test *t = *state;

    assert_ok(take_preconfig(t, size, -1), &t->err);
    for (size_t i = 0; i < ARRAY_SIZE(ones); i++)
        assert_exti(take_preconfig(t, size, (int)ones[i]), EXTI_E_LOAD, &t->err, EXTI_NO_OFFSET);
    assert_exti(take_preconfig(t, size - 4, -1), EXTI_E_LOAD, &t->err, EXTI_NO_OFFSET);
    assert_exti(take_preconfig(t, size + 4, -1), EXTI_E_LOAD, &t->err, EXTI_NO_OFFSET);
    assert_says(&t->err, "PyPreConfig of this CPython build (44 bytes)");
}

/* ---- the table ---- */

struct walk {
    size_t end;
    int members;
    bool in_order;
};

static void step(void *user, const char *name, enum pyrt_kind kind, size_t offset)
{
    static const size_t sizes[] = {sizeof(int), sizeof(unsigned long), sizeof(wchar_t *),
                                   sizeof(struct pyrt_wlist)};
    struct walk *w = user;

    (void)name;
    w->in_order = w->in_order && offset >= w->end && offset - w->end < sizeof(void *);
    w->end = offset + sizes[kind];
    w->members++;
}

static struct walk walk_members(struct pyrt_build b)
{
    struct walk w = {.in_order = true};

    pyrt_fields(b, step, &w);
    return w;
}

static void members_follow_one_another_in_each_build(void **state)
{
    (void)state;
    for (int minor = PYRT_MINOR_FIRST; minor <= PYRT_MINOR_LAYOUT; minor++)
        for (int debug = 0; debug < 2; debug++) {
            const struct pyrt_build b = {.minor = minor, .debug = debug};
            const struct walk w = walk_members(b);

            assert_true(w.in_order);
            assert_true(w.end <= pyrt_config_size(b) && pyrt_config_size(b) < PYRT_CONFIG_ROOM);
        }
}

static void variants_have_members_of_their_own(void **state)
{
    const struct pyrt_build plain = {.minor = 13}, threads = {.minor = 13, .free_threaded = 1},
                            debug = {.minor = 13, .debug = 1};
    union pyrt_config c;

    (void)state;
    assert_int_equal(walk_members(threads).members, walk_members(plain).members + 1);
    assert_int_equal(walk_members(debug).members, walk_members(plain).members + 1);
    assert_null(pyrt_field(&c, plain, PYRT_INT, "enable_gil"));
    assert_non_null(pyrt_field(&c, threads, PYRT_INT, "enable_gil"));
    assert_null(pyrt_field(&c, plain, PYRT_INT, "_use_peg_parser"));
    assert_null(pyrt_field(&c, plain, PYRT_WSTR, "no_such_member"));
    assert_non_null(pyrt_field(&c, plain, PYRT_WSTR, "home"));
    assert_null(pyrt_field(&c, plain, PYRT_INT, "home"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(a_stock_config_is_taken),
        exti_test(a_longer_or_shorter_config_is_refused),
        exti_test(other_defaults_are_refused),
        exti_test(only_a_stock_preconfig_is_taken),
        exti_test(members_follow_one_another_in_each_build),
        exti_test(variants_have_members_of_their_own),
    };

    return cmocka_run_group_tests_name("runtime/pyconfig", tests, NULL, NULL);
}
