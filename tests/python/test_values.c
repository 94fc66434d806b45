/* Values go into a context and come back as they were. */
#include "tests/python/support/host.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One context for all tests, and in it helpers that judge what arrives. */
static struct extipy_ctx *ctx;

static int open_context(void **state)
{
    (void)state;
    ctx = host_open();
    host_run(ctx, "def same(x): return x\n"
                  "def show(x): return repr(x)\n"
                  "def ev(source): return eval(source)\n");
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    host_close(ctx);
    return 0;
}

static struct extipy_value get(const struct extipy_values *v, size_t number)
{
    struct extipy_value value = {.size = sizeof value};

    assert_int_equal(extipy_value(v, number, &value), 0);
    return value;
}

static size_t item(const struct extipy_values *v, size_t number, size_t i)
{
    struct extipy_value value = get(v, number);

    assert_true(i < value.count);
    return value.items[i];
}

/* Calls a function of one argument; frees `v`. */
static struct extipy_values *call_with(const char *function, struct extipy_values *v, size_t number)
{
    struct extipy_call call = {.size = sizeof call, .function = function, .values = v};
    struct extipy_values *result = NULL;
    struct exti_error err = {0};

    call.args = extipy_container(v, EXTIPY_TUPLE, &number, 1);
    assert_ok(extipy_call(ctx, &call, &result, NULL, &err), &err);
    extipy_values_free(v);
    return result;
}

static struct extipy_values *eval(const char *source)
{
    struct extipy_values *v = NULL;

    assert_int_equal(extipy_values_new(&v, NULL), 0);
    return call_with("__main__:ev", v, extipy_str(v, source, strlen(source)));
}

/* What Python says a value is. */
static void assert_arrives(struct extipy_values *v, size_t number, const char *repr)
{
    struct extipy_values *result = call_with("__main__:show", v, number);

    assert_string_equal(get(result, 1).bytes, repr);
    extipy_values_free(result);
}

static struct extipy_values *new_values(void)
{
    struct extipy_values *v = NULL;

    assert_int_equal(extipy_values_new(&v, NULL), 0);
    return v;
}

/* ---- single values ---- */

static void plain_values_arrive(void **state)
{
    struct extipy_values *v = new_values();

    (void)state;
    assert_arrives(v, extipy_none(v), "None");
    v = new_values();
    assert_arrives(v, extipy_bool(v, 7), "True");
    v = new_values();
    assert_arrives(v, extipy_bool(v, 0), "False");
    v = new_values();
    assert_arrives(v, extipy_float(v, -0.1), "-0.1");
    v = new_values();
    assert_arrives(v, extipy_bytes(v, "a\0\xFF", 3), "b'a\\x00\\xff'");
    v = new_values();
    assert_arrives(v, extipy_bytes(v, NULL, 0), "b''");
    v = new_values();
    assert_arrives(v, extipy_str(v, "a\0\xC3\xA4\xF0\x9F\x98\x80", 8),
                   "'a\\x00\xC3\xA4\xF0\x9F\x98\x80'");
}

static void integers_of_any_size_arrive(void **state)
{
    static const struct {
        int64_t n;
        const char *repr;
    } small[] = {
        {0, "0"},
        {-1, "-1"},
        {127, "127"},
        {128, "128"},
        {-129, "-129"},
        {INT64_MAX, "9223372036854775807"},
        {INT64_MIN, "-9223372036854775808"},
    };
    struct extipy_values *v;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(small); i++) {
        v = new_values();
        assert_arrives(v, extipy_int(v, small[i].n), small[i].repr);
    }
    v = new_values();
    assert_arrives(v, extipy_big_int(v, "\0\0\0\0\0\0\0\0\1", 9), "18446744073709551616");
    v = new_values();
    assert_arrives(v, extipy_big_int(v, "\0\0\0\0\0\0\0\x80\xFF\xFF", 10), "-9223372036854775808");
    v = new_values();
    assert_arrives(v, extipy_big_int(v, NULL, 0), "0");
}

static void integers_of_any_size_come_back(void **state)
{
    static const struct {
        const char *source;
        int64_t integer;
        size_t length;
    } small[] = {
        {"0", 0, 1},
        {"-1", -1, 1},
        {"127", 127, 1},
        {"128", 128, 2},
        {"-128", -128, 1},
        {"2**63 - 1", INT64_MAX, 8},
        {"-2**63", INT64_MIN, 8},
    };
    struct extipy_values *v;
    struct extipy_value n;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(small); i++) {
        v = eval(small[i].source);
        n = get(v, 1);
        assert_int_equal(n.kind, EXTIPY_INT);
        assert_int_equal(n.integer, small[i].integer);
        assert_int_equal(n.length, small[i].length);
        extipy_values_free(v);
    }
    v = eval("-2**71 + 5");
    n = get(v, 1);
    assert_int_equal(n.length, 9);
    assert_memory_equal(n.bytes, "\5\0\0\0\0\0\0\0\x80", 9);
    extipy_values_free(v);
    v = eval("3 ** 5000");
    n = get(v, 1);
    assert_int_equal(n.length, 991);
    extipy_values_free(v);
}

static void a_large_integer_goes_there_and_back(void **state)
{
    struct extipy_values *v = eval("-7 ** 3000"), *back;
    struct extipy_value n = get(v, 1), m;
    char *bytes = malloc(n.length);

    (void)state;
    assert_non_null(bytes);
    memcpy(bytes, n.bytes, n.length);
    back = call_with("__main__:same", v, 1);
    m = get(back, 1);
    assert_memory_equal(m.bytes, bytes, m.length);
    free(bytes);
    extipy_values_free(back);
}

static void plain_values_come_back(void **state)
{
    struct extipy_values *v = eval("(None, True, 2.5, 'a\\0\xC3\xA4', b'\\0b', float('nan'))");

    (void)state;
    assert_int_equal(get(v, 1).kind, EXTIPY_TUPLE);
    assert_int_equal(get(v, 1).count, 6);
    assert_int_equal(get(v, item(v, 1, 0)).kind, EXTIPY_NONE);
    assert_int_equal(get(v, item(v, 1, 1)).kind, EXTIPY_BOOL);
    assert_int_equal(get(v, item(v, 1, 1)).integer, 1);
    assert_true(get(v, item(v, 1, 2)).real == 2.5);
    assert_int_equal(get(v, item(v, 1, 3)).length, 4);
    assert_memory_equal(get(v, item(v, 1, 3)).bytes, "a\0\xC3\xA4", 5);
    assert_memory_equal(get(v, item(v, 1, 4)).bytes, "\0b", 3);
    assert_true(isnan(get(v, item(v, 1, 5)).real));
    extipy_values_free(v);
}

static void lone_surrogates_have_their_three_bytes(void **state)
{
    struct extipy_values *v = eval("'\\ud800'");

    (void)state;
    assert_int_equal(get(v, 1).length, 3);
    assert_memory_equal(get(v, 1).bytes, "\xED\xA0\x80", 4);
    assert_arrives(v, 1, "'\\ud800'");
}

static void text_that_is_not_utf8_is_refused(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:same"};
    struct extipy_values *v = new_values();
    struct test *t = *state;
    size_t text = extipy_str(v, "\xFF", 1);

    call.values = v;
    call.args = extipy_container(v, EXTIPY_LIST, &text, 1);
    assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTIPY_E_RAISED);
    assert_says(&t->err, "UnicodeDecodeError");
    extipy_values_free(v);
}

/* ---- containers ---- */

static void containers_arrive_in_order(void **state)
{
    struct extipy_values *v = new_values();
    size_t one = extipy_int(v, 1), two = extipy_int(v, 2), list, set, dict, tuple;

    (void)state;
    list = extipy_container(v, EXTIPY_LIST, (size_t[]){one, two}, 2);
    extipy_add(v, list, one);
    set = extipy_container(v, EXTIPY_SET, &one, 1);
    extipy_add(v, set, one);
    dict = extipy_container(v, EXTIPY_DICT, (size_t[]){two, one}, 2);
    extipy_add_pair(v, dict, one, list);
    tuple = extipy_container(v, EXTIPY_TUPLE, (size_t[]){list, set, dict}, 3);
    assert_arrives(v, tuple, "([1, 2, 1], {1}, {2: 1, 1: [1, 2, 1]})");
}

static void sharing_is_kept(void **state)
{
    struct extipy_values *v = new_values(), *result;
    size_t list = extipy_container(v, EXTIPY_LIST, NULL, 0);

    (void)state;
    result =
        call_with("__main__:same", v, extipy_container(v, EXTIPY_TUPLE, (size_t[]){list, list}, 2));
    assert_int_equal(item(result, 1, 0), item(result, 1, 1));
    extipy_values_free(result);
    result = eval("([], [])");
    assert_int_not_equal(item(result, 1, 0), item(result, 1, 1));
    extipy_values_free(result);
}

static void cycles_are_kept(void **state)
{
    struct extipy_values *v = new_values(), *result;
    size_t list = extipy_container(v, EXTIPY_LIST, NULL, 0), key = extipy_str(v, "k", 1), dict;

    (void)state;
    dict = extipy_container(v, EXTIPY_DICT, NULL, 0);
    extipy_add(v, list, extipy_container(v, EXTIPY_TUPLE, (size_t[]){list, dict}, 2));
    extipy_add_pair(v, dict, key, list);
    host_run(ctx, "def turn(x):\n"
                  "    assert x[0][0] is x and x[0][1]['k'] is x and len(x) == 1\n"
                  "    return x\n");
    result = call_with("__main__:turn", v, list);
    list = item(result, 1, 0);
    assert_int_equal(item(result, list, 0), 1);
    assert_int_equal(item(result, item(result, list, 1), 1), 1);
    /* What has come back goes in again. */
    result = call_with("__main__:turn", result, 1);
    extipy_values_free(result);
}

static void depth_is_no_matter(void **state)
{
    struct extipy_values *v = new_values(), *result;
    size_t at = extipy_int(v, 1), depth = 0;

    (void)state;
    for (int i = 0; i < 50000; i++)
        at = extipy_container(v, i % 2 ? EXTIPY_LIST : EXTIPY_TUPLE, &at, 1);
    result = call_with("__main__:same", v, at);
    for (at = 1; get(result, at).count; at = item(result, at, 0))
        depth++;
    assert_int_equal(depth, 50000);
    assert_int_equal(get(result, at).integer, 1);
    extipy_values_free(result);
}

static void what_cannot_be_hashed_raises(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:same"};
    struct extipy_values *v = new_values();
    struct test *t = *state;
    size_t list = extipy_container(v, EXTIPY_LIST, NULL, 0);
    size_t set = extipy_container(v, EXTIPY_SET, &list, 1);

    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, &set, 1);
    assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTIPY_E_RAISED);
    assert_says(&t->err, "TypeError: ");
    assert_says(&t->err, "unhashable type");
    extipy_values_free(v);
}

static void only_exact_types_are_copied(void **state)
{
    static const char *const others[] = {
        "__import__('enum').IntEnum('E', 'a')['a']",
        "__import__('collections').OrderedDict()",
        "type('T', (tuple,), {})()",
        "bytearray(b'x')",
        "frozenset()",
        "1j",
        "len",
        "type('S', (str,), {})('x')",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        struct extipy_values *v = eval(others[i]);

        assert_int_equal(get(v, 1).kind, EXTIPY_OBJECT);
        assert_non_null(get(v, 1).object);
        extipy_values_free(v);
    }
}

/* Native code can make such tuples; they come out, and cannot be made again. */
static void a_tuple_within_itself_is_refused(void **state)
{
    static const char make[] =
        "import ctypes\n"
        "def put(t, i, item):\n"
        "    at = id(t) + tuple.__basicsize__ + i * tuple.__itemsize__\n"
        "    ctypes.c_void_p.from_address(at).value = id(item)\n"
        "    ctypes.pythonapi.Py_IncRef(ctypes.py_object(item))\n"
        "def alone(): t = (1, None); put(t, 1, t); return t\n"
        "def pair(): t = (1, None); put(t, 1, (2, t)); return t\n"
        "def in_list(): t = (1, None); put(t, 1, ([], (3, t))); return [t]\n";
    static const char *const makers[] = {"alone()", "pair()", "in_list()"};
    struct extipy_call call = {.size = sizeof call, .function = "__main__:same", .args = 1};
    struct test *t = *state;

    host_run(ctx, make);
    for (size_t i = 0; i < ARRAY_SIZE(makers); i++) {
        struct extipy_values *v = eval(makers[i]);

        call.values = v;
        assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTIPY_E_RAISED);
        assert_says(&t->err, "TypeError: a tuple is within itself");
        extipy_values_free(v);
    }
}

/* ---- wrong use ---- */

static void a_fault_is_remembered(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:same"};
    struct test *t = *state;
    struct extipy_values *v;
    size_t number = 9, one;

    for (int i = 0; i < 15; i++) {
        v = new_values();
        one = extipy_int(v, 1);
        switch (i) {
        case 0:
            assert_int_equal(extipy_container(v, EXTIPY_LIST, &number, 1), 0);
            break;
        case 1:
            assert_int_equal(extipy_container(v, EXTIPY_DICT, &one, 1), 0);
            break;
        case 2:
            assert_int_equal(extipy_container(v, EXTIPY_INT, &one, 1), 0);
            break;
        case 3:
            assert_int_equal(extipy_add(v, one, one), 0);
            break;
        case 4:
            assert_int_equal(
                extipy_add_pair(v, extipy_container(v, EXTIPY_LIST, NULL, 0), one, one), 0);
            break;
        case 5:
            assert_int_equal(extipy_object(v, NULL), 0);
            break;
        case 6:
            assert_int_equal(extipy_str(v, NULL, 3), 0);
            break;
        case 7:
            assert_int_equal(extipy_big_int(v, NULL, 3), 0);
            break;
        case 8:
            assert_int_equal(extipy_buffer(v, NULL), 0);
            break;
        case 9:
            assert_int_equal(extipy_container(v, EXTIPY_OBJECT, &one, 1), 0);
            break;
        case 10:
            assert_int_equal(extipy_container(v, EXTIPY_LIST, NULL, 1), 0);
            break;
        case 11:
            assert_int_equal(extipy_add_pair(v, number, one, one), 0);
            break;
        case 12:
            assert_int_equal(extipy_add(v, number, one), 0);
            break;
        case 13:
            assert_int_equal(extipy_add(v, extipy_container(v, EXTIPY_SET, NULL, 0), number), 0);
            assert_int_equal(extipy_str(v, NULL, 3), 0); /* the second fault */
            break;
        default:
            assert_int_equal(extipy_add(v, extipy_container(v, EXTIPY_LIST, NULL, 0), 0), 0);
        }
        call.values = v;
        call.args = extipy_container(v, EXTIPY_TUPLE, &one, 1);
        assert_int_not_equal(call.args, 0);
        assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTI_E_ARG);
        assert_says(&t->err, "wrong argument");
        extipy_values_free(v);
    }
    assert_int_equal(extipy_none(NULL), 0);
    assert_int_equal(extipy_str(NULL, "x", 1), 0);
    assert_int_equal(extipy_big_int(NULL, "x", 1), 0);
    assert_int_equal(extipy_object(NULL, NULL), 0);
    assert_int_equal(extipy_container(NULL, EXTIPY_LIST, NULL, 0), 0);
    assert_int_equal(extipy_add(NULL, 1, 1), 0);
    assert_int_equal(extipy_add_pair(NULL, 1, 1, 1), 0);
    assert_int_equal(extipy_values_new(NULL, &t->err), EXTI_E_ARG);
    extipy_values_free(NULL);
}

static void reading_checks_the_number(void **state)
{
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *v = new_values();

    (void)state;
    assert_int_equal(extipy_value(v, 0, &value), EXTI_E_ARG);
    assert_int_equal(extipy_value(v, 1, &value), EXTI_E_ARG);
    assert_int_equal(extipy_value(NULL, 1, &value), EXTI_E_ARG);
    extipy_none(v);
    assert_int_equal(extipy_value(v, 1, NULL), EXTI_E_ARG);
    value = (struct extipy_value){.size = offsetof(struct extipy_value, integer), .integer = 5};
    assert_int_equal(extipy_value(v, extipy_int(v, 3), &value), 0);
    assert_int_equal(value.kind, EXTIPY_INT);
    assert_int_equal(value.integer, 5);
    extipy_values_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(plain_values_arrive),
        exti_test(integers_of_any_size_arrive),
        exti_test(integers_of_any_size_come_back),
        exti_test(a_large_integer_goes_there_and_back),
        exti_test(plain_values_come_back),
        exti_test(lone_surrogates_have_their_three_bytes),
        exti_test(text_that_is_not_utf8_is_refused),
        exti_test(containers_arrive_in_order),
        exti_test(sharing_is_kept),
        exti_test(cycles_are_kept),
        exti_test(depth_is_no_matter),
        exti_test(what_cannot_be_hashed_raises),
        exti_test(only_exact_types_are_copied),
        exti_test(a_tuple_within_itself_is_refused),
        exti_test(a_fault_is_remembered),
        exti_test(reading_checks_the_number),
    };

    return cmocka_run_group_tests_name("python/values", tests, open_context, close_context);
}
