/* Source is run and functions are called; exceptions come back described. */
#include "tests/python/support/host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct extipy_ctx *ctx;

static int open_context(void **state)
{
    (void)state;
    ctx = host_open();
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    host_close(ctx);
    return 0;
}

static void exec(const char *source)
{
    struct exti_error err = {0};

    assert_ok(extipy_exec(ctx, source, NULL, &err), &err);
}

static struct extipy_exception *fails(const char *source, struct exti_error *err)
{
    struct extipy_exception *e = NULL;

    assert_int_equal(extipy_exec(ctx, source, &e, err), EXTIPY_E_RAISED);
    assert_non_null(e);
    assert_non_null(e->object);
    return e;
}

static long call_long(const struct extipy_call *call)
{
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *result = NULL;
    struct exti_error err = {0};

    assert_ok(extipy_call(ctx, call, &result, NULL, &err), &err);
    assert_int_equal(extipy_value(result, 1, &value), 0);
    assert_int_equal(value.kind, EXTIPY_INT);
    extipy_values_free(result);
    return (long)value.integer;
}

static void arguments_have_places_and_names(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:f"};
    struct extipy_values *v = NULL;
    size_t a, b, name;

    (void)state;
    exec("def f(a=1, b=2, *, c=3): return a * 100 + b * 10 + c");
    assert_int_equal(call_long(&call), 123);
    assert_int_equal(extipy_values_new(&v, NULL), 0);
    a = extipy_int(v, 7);
    b = extipy_int(v, 8);
    name = extipy_str(v, "c", 1);
    call.values = v;
    call.args = extipy_container(v, EXTIPY_LIST, (size_t[]){a, b}, 2);
    assert_int_equal(call_long(&call), 783);
    call.kwargs = extipy_container(v, EXTIPY_DICT, (size_t[]){name, a}, 2);
    assert_int_equal(call_long(&call), 787);
    call.args = 0;
    assert_int_equal(call_long(&call), 127);
    extipy_values_free(v);
}

static void functions_are_found_by_module_and_name(void **state)
{
    struct extipy_call call = {
        .size = sizeof call,
        .function = "xml.dom.minidom:Document.appendChild.__code__.co_argcount.__int__"};
    struct test *t = *state;

    assert_int_equal(call_long(&call), 2);
    call.function = "os:no_such_thing";
    assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTIPY_E_RAISED);
    assert_says(&t->err, "AttributeError");
    call.function = "no_such_module:f";
    assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTIPY_E_RAISED);
    assert_says(&t->err, "ModuleNotFoundError: No module named 'no_such_module'");
}

static void wrong_calls_are_refused(void **state)
{
    static const char *const functions[] = {"", ":", "f", "m:", ":f"};
    struct extipy_call call = {.size = sizeof call};
    struct extipy_values *v = NULL;
    struct test *t = *state;
    size_t one;

    assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTI_E_ARG);
    for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
        call.function = functions[i];
        assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTI_E_ARG);
        assert_says(&t->err, "module:qualname");
    }
    call.function = "os:getpid";
    call.args = 1;
    assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_values_new(&v, NULL), 0);
    one = extipy_int(v, 1);
    call.values = v;
    assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTI_E_ARG);
    assert_says(&t->err, "args");
    call.args = 0;
    call.kwargs = one;
    assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTI_E_ARG);
    call.kwargs = extipy_container(v, EXTIPY_DICT, (size_t[]){one, one}, 2);
    assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTI_E_ARG);
    assert_says(&t->err, "not a STR");
    call.size = 0;
    assert_int_equal(extipy_call(ctx, &call, NULL, NULL, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_call(ctx, NULL, NULL, NULL, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_call(NULL, &call, NULL, NULL, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_exec(ctx, NULL, NULL, &t->err), EXTI_E_ARG);
    extipy_values_free(v);
}

/* ---- exceptions ---- */

static void an_exception_is_described(void **state)
{
    struct test *t = *state;
    struct extipy_exception *e = fails("def f(): return 1 / 0\nf()", &t->err);

    assert_string_equal(e->type, "ZeroDivisionError");
    assert_string_equal(e->message, "division by zero");
    assert_string_equal(t->err.message, "ZeroDivisionError: division by zero");
    assert_contains(e->traceback, "Traceback (most recent call last):\n");
    assert_contains(e->traceback, "line 1, in f\n");
    assert_contains(e->traceback, "\nZeroDivisionError: division by zero\n");
    assert_null(e->cause);
    assert_null(e->context);
    extipy_exception_free(e);
    e = fails("import json; json.loads('{')", &t->err);
    assert_string_equal(e->type, "json.decoder.JSONDecodeError");
    extipy_exception_free(e);
    e = fails("class E(Exception): pass\nraise E", &t->err);
    assert_string_equal(e->type, "__main__.E");
    assert_string_equal(t->err.message, "__main__.E");
    extipy_exception_free(e);
}

static void the_chain_is_described(void **state)
{
    struct test *t = *state;
    struct extipy_exception *e = fails("try:\n"
                                       "    try: raise KeyError('a')\n"
                                       "    except KeyError: raise ValueError('b')\n"
                                       "except ValueError as b: raise OSError('c') from b\n",
                                       &t->err);

    assert_string_equal(e->type, "OSError");
    assert_string_equal(e->cause->type, "ValueError");
    assert_string_equal(e->context->type, "ValueError");
    assert_null(e->cause->cause);
    assert_string_equal(e->cause->context->message, "'a'");
    assert_contains(e->traceback, "direct cause");
    extipy_exception_free(e);
}

static void a_chain_that_is_a_circle_ends(void **state)
{
    struct test *t = *state;
    struct extipy_exception *e =
        fails("a, b = ValueError('a'), ValueError('b')\na.__cause__ = b\nb.__cause__ = a\nraise a",
              &t->err);
    int n = 0;

    for (struct extipy_exception *at = e; at; at = at->cause)
        n++;
    assert_in_range(n, 2, 64);
    extipy_exception_free(e);
}

static void every_exception_comes_back(void **state)
{
    static const struct {
        const char *source, *type;
    } ways[] = {
        {"raise SystemExit(3)", "SystemExit"},
        {"raise KeyboardInterrupt", "KeyboardInterrupt"},
        {"[0] * (1 << 62)", "MemoryError"},
        {"def f(): f()\nf()", "RecursionError"},
        {"if", "SyntaxError"},
        {"class B(BaseException):\n    def __str__(self): raise ValueError\nraise B", "__main__.B"},
        {"raise type('X', (Exception,), {'__module__': 3})", "X"},
        {"raise GeneratorExit", "GeneratorExit"},
        {"import sys; sys.exit('text')", "SystemExit"},
        {"raise ValueError('\\ud800')", "ValueError"},
    };
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
        struct extipy_exception *e = fails(ways[i].source, &t->err);

        assert_string_equal(e->type, ways[i].type);
        assert_non_null(e->traceback);
        extipy_exception_free(e);
        exec("x = 1");
    }
}

/* The exception itself can be asked. */
static void the_exception_has_a_handle(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:code"};
    struct extipy_values *v = NULL;
    struct test *t = *state;
    struct extipy_exception *e = fails("def code(e): return e.code\nraise SystemExit(42)", &t->err);
    size_t object;

    assert_int_equal(extipy_values_new(&v, NULL), 0);
    object = extipy_object(v, e->object);
    extipy_exception_free(e);
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, &object, 1);
    assert_int_equal(call_long(&call), 42);
    extipy_values_free(v);
}

static void an_exception_outlives_its_context(void **state)
{
    struct extipy_exception *e = NULL;
    struct extipy_ctx *c = host_open();
    struct test *t = *state;

    assert_int_equal(extipy_exec(c, "raise ValueError('gone')", &e, &t->err), EXTIPY_E_RAISED);
    host_close(c);
    assert_string_equal(e->message, "gone");
    extipy_exception_free(e);
    extipy_exception_free(NULL);
}

/* ---- from many threads ---- */

static void *call_often(void *arg)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:grow"};
    struct extipy_values *v = NULL;
    size_t n;

    (void)arg;
    for (int i = 0; i < 300; i++) {
        if (extipy_values_new(&v, NULL) != 0)
            return NULL;
        n = extipy_int(v, i);
        call.values = v;
        call.args = extipy_container(v, EXTIPY_TUPLE, &n, 1);
        if (extipy_call(ctx, &call, NULL, NULL, NULL) != (i % 3 ? 0 : EXTIPY_E_RAISED))
            return NULL;
        extipy_values_free(v);
    }
    return arg;
}

static void threads_call_at_once(void **state)
{
    pthread_t t[6];
    void *done;

    (void)state;
    test_time_limit(300);
    exec("import threading\n"
         "calls, lock = 0, threading.Lock()\n"
         "def grow(n):\n"
         "    global calls\n"
         "    with lock: calls += 1\n"
         "    if n % 3 == 0: raise ValueError(n)\n"
         "    return [n] * n\n");
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&t[i], NULL, call_often, ctx), 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(t[i], &done), 0);
        assert_ptr_equal(done, ctx);
    }
    assert_int_equal(host_long(ctx, "calls"), 1800);
    test_time_limit(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(arguments_have_places_and_names),
        exti_test(functions_are_found_by_module_and_name),
        exti_test(wrong_calls_are_refused),
        exti_test(an_exception_is_described),
        exti_test(the_chain_is_described),
        exti_test(a_chain_that_is_a_circle_ends),
        exti_test(every_exception_comes_back),
        exti_test(the_exception_has_a_handle),
        exti_test(an_exception_outlives_its_context),
        exti_test(threads_call_at_once),
    };

    return cmocka_run_group_tests_name("python/calls", tests, open_context, close_context);
}
