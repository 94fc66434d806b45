/* Objects stay where they are, and whoever lets go of one waits for nobody. */
#include "tests/python/support/host.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char things[] = "import threading\n"
                             "freed = 0\n"
                             "where = None\n"
                             "class Thing:\n"
                             "    def __init__(self, n=0): self.n = n\n"
                             "    def __call__(self, n): self.n += n; return self.n\n"
                             "    def __del__(self):\n"
                             "        global freed, where\n"
                             "        freed += 1\n"
                             "        where = threading.current_thread()\n";

static struct extipy_ctx *open_with_things(void)
{
    struct extipy_ctx *c = host_open();

    host_run(c, things);
    return c;
}

/* A new Thing; the reference is the caller's. */
static struct extipy_object *new_thing(struct extipy_ctx *c)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:Thing"};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *result = NULL;
    struct extipy_object *object;
    struct exti_error err = {0};

    assert_ok(extipy_call(c, &call, &result, NULL, &err), &err);
    assert_int_equal(extipy_value(result, 1, &value), 0);
    assert_int_equal(value.kind, EXTIPY_OBJECT);
    object = extipy_object_keep(value.object);
    extipy_values_free(result);
    assert_ptr_equal(extipy_object_ctx(object), c);
    return object;
}

static int64_t call_thing(struct extipy_ctx *c, struct extipy_object *thing, int n)
{
    struct extipy_call call = {.size = sizeof call, .callee = thing};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *v = NULL, *result = NULL;
    struct exti_error err = {0};
    size_t number;

    assert_ok(extipy_values_new(&v, &err), &err);
    number = extipy_int(v, n);
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, &number, 1);
    assert_ok(extipy_call(c, &call, &result, NULL, &err), &err);
    assert_int_equal(extipy_value(result, 1, &value), 0);
    extipy_values_free(result);
    extipy_values_free(v);
    return value.integer;
}

/* Waits until the context has freed so many. */
static void assert_freed(struct extipy_ctx *c, long count)
{
    for (int i = 0; i < 6000 && host_long(c, "freed") != count; i++)
        usleep(10000);
    assert_int_equal(host_long(c, "freed"), count);
}

static void a_handle_is_called(void **state)
{
    struct extipy_ctx *c = open_with_things();
    struct extipy_object *thing = new_thing(c);

    (void)state;
    assert_int_equal(call_thing(c, thing, 20), 20);
    assert_int_equal(call_thing(c, thing, 22), 42);
    assert_int_equal(host_long(c, "freed"), 0);
    extipy_object_release(thing);
    assert_freed(c, 1);
    host_close(c);
}

static void a_handle_goes_home_as_the_object(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:same"};
    struct extipy_ctx *c = open_with_things();
    struct extipy_object *thing = new_thing(c);
    struct extipy_values *v = NULL;
    struct exti_error err = {0};
    size_t object;

    (void)state;
    host_run(c, "def same(a, b): assert a is b and type(a) is Thing; return a.n");
    assert_ok(extipy_values_new(&v, &err), &err);
    object = extipy_object(v, thing);
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, (size_t[]){object, extipy_object(v, thing)}, 2);
    extipy_object_release(thing);
    assert_ok(extipy_call(c, &call, NULL, NULL, &err), &err);
    extipy_values_free(v);
    assert_freed(c, 1);
    host_close(c);
}

static void a_result_can_be_told_to_stay(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "os:getpid", .stay = 1};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *result = NULL;
    struct extipy_ctx *c = host_open();
    struct test *t = *state;

    assert_ok(extipy_call(c, &call, &result, NULL, &t->err), &t->err);
    assert_int_equal(extipy_value(result, 1, &value), 0);
    assert_int_equal(value.kind, EXTIPY_OBJECT);
    extipy_values_free(result);
    host_close(c);
}

static void another_context_refuses_it(void **state)
{
    struct extipy_ctx *a = open_with_things(), *b = open_with_things();
    struct extipy_call call = {.size = sizeof call, .function = "builtins:repr"};
    struct extipy_object *thing = new_thing(a);
    struct extipy_values *v = NULL;
    struct test *t = *state;
    size_t object;

    assert_ok(extipy_values_new(&v, &t->err), &t->err);
    object = extipy_object(v, thing);
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, &object, 1);
    assert_int_equal(extipy_call(b, &call, NULL, NULL, &t->err), EXTIPY_E_RAISED);
    assert_says(&t->err, "another context");
    call.function = NULL;
    call.callee = thing;
    assert_int_equal(extipy_call(b, &call, NULL, NULL, &t->err), EXTI_E_ARG);
    assert_says(&t->err, "another context");
    extipy_values_free(v);
    extipy_object_release(thing);
    host_close(a);
    host_close(b);
}

/* A reference to the handle of what ask() gives. */
static struct extipy_object *ask(struct extipy_ctx *c)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:ask"};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *result = NULL;
    struct extipy_object *object;

    host_must(extipy_call(c, &call, &result, NULL, NULL));
    host_must(extipy_value(result, 1, &value));
    object = extipy_object_keep(value.object);
    extipy_values_free(result);
    return object;
}

static void an_object_has_one_handle(void **state)
{
    struct extipy_ctx *c = open_with_things();
    struct extipy_object *thing, *again, *other;

    (void)state;
    host_run(c, "kept = Thing()\ndef ask(): return kept\n");
    thing = ask(c);
    again = ask(c);
    assert_ptr_equal(again, thing);
    other = new_thing(c);
    assert_ptr_not_equal(other, thing);
    extipy_object_release(again);
    assert_int_equal(call_thing(c, thing, 3), 3);
    /* After the last one has gone, and been released, there is another. */
    extipy_object_release(thing);
    again = ask(c);
    assert_int_equal(call_thing(c, again, 4), 7);
    extipy_object_release(again);
    extipy_object_release(other);
    host_run(c, "del kept");
    assert_freed(c, 2);
    host_close(c);
}

#define ASKERS 4
#define ASKED 2000

static void *ask_and_release(void *arg)
{
    for (int i = 0; i < ASKED; i++)
        extipy_object_release(ask(arg));
    if (extipy_detach(arg, NULL) != 0)
        abort();
    return NULL;
}

/* The last reference to the handle may go on one thread just when another one asks for it. */
static void releasing_meets_asking(void **state)
{
    struct extipy_ctx *c = open_with_things();
    pthread_t t[ASKERS];

    (void)state;
    host_run(c, "kept = Thing()\ndef ask(): return kept\n");
    for (int i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_create(&t[i], NULL, ask_and_release, c), 0);
    for (int i = 0; i < ASKERS; i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
    assert_int_equal(host_long(c, "sys.getrefcount(kept) if (sys := __import__('sys')) else 0"), 2);
    host_run(c, "del kept");
    assert_freed(c, 1);
    host_close(c);
}

static sem_t arrived, go_on;

static void *hold_gil(void *arg)
{
    struct extipy_ctx *c = arg;

    if (extipy_enter(c, NULL) != 0)
        abort();
    sem_post(&arrived);
    sem_wait(&go_on);
    if (extipy_leave(c, NULL) != 0)
        abort();
    return NULL;
}

/* While another thread has the GIL, which it does not let go of. */
static void releasing_waits_for_nobody(void **state)
{
    struct extipy_ctx *c = open_with_things();
    struct extipy_object *thing[100];
    pthread_t holder;

    (void)state;
    for (int i = 0; i < 100; i++)
        thing[i] = new_thing(c);
    sem_init(&arrived, 0, 0);
    sem_init(&go_on, 0, 0);
    assert_int_equal(pthread_create(&holder, NULL, hold_gil, c), 0);
    while (sem_wait(&arrived) != 0)
        continue;
    test_time_limit(60);
    for (int i = 0; i < 100; i++)
        extipy_object_release(thing[i]);
    test_time_limit(0);
    sem_post(&go_on);
    assert_int_equal(pthread_join(holder, NULL), 0);
    assert_freed(c, 100);
    host_close(c);
}

static void an_idle_context_releases_at_once(void **state)
{
    struct test *t = *state;
    struct extipy_ctx *c = open_with_things();
    struct extipy_object *thing = new_thing(c);
    char *path = test_path(t, "freed");

    host_run(c, test_format(t,
                            "Thing.__del__ = lambda self: open('%s', 'w').write("
                            "str(threading.current_thread() is threading.main_thread()))",
                            path));
    extipy_object_release(thing);
    for (int i = 0; i < 6000 && access(path, F_OK) != 0; i++)
        usleep(10000);
    usleep(10000);
    host_run(c, "pass");
    assert_string_equal(test_read(t, path, NULL), "True");
    host_close(c);
}

static void *release_it(void *arg)
{
    extipy_object_release(arg);
    return NULL;
}

static void any_thread_releases(void **state)
{
    struct extipy_ctx *c = open_with_things();
    pthread_t t[20];

    (void)state;
    for (int i = 0; i < 20; i++)
        assert_int_equal(pthread_create(&t[i], NULL, release_it, new_thing(c)), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
    assert_freed(c, 20);
    host_close(c);
}

static void handles_outlive_their_context(void **state)
{
    struct extipy_ctx *c = open_with_things();
    struct extipy_object *first = new_thing(c), *second = new_thing(c);
    struct test *t = *state;
    char *path = test_path(t, "freed");

    /* Its objects are freed at the end, while Python still can. */
    host_run(c,
             test_format(t, "Thing.__del__ = lambda self: print('x', file=open('%s', 'a'))", path));
    host_close(c);
    assert_string_equal(test_read(t, path, NULL), "x\nx\n");
    extipy_object_release(extipy_object_keep(first));
    extipy_object_release(first);
    extipy_object_release(second);
    extipy_object_release(NULL);
    assert_null(extipy_object_keep(NULL));
}

static void *release_slowly(void *arg)
{
    struct extipy_object **things_of = arg;

    for (int i = 0; i < 200; i++)
        extipy_object_release(things_of[i]);
    return NULL;
}

/* ---- calls that are to be made soon ---------------------------------------------------------- */

static int (*has_gil)(void); /* PyGILState_Check of the context */

static void note_call(void *user)
{
    if (has_gil())
        sem_post(user);
}

static void an_idle_context_calls_at_once(void **state)
{
    struct extipy_ctx *c = host_open();
    sem_t called;

    (void)state;
    sem_init(&called, 0, 0);
    host_symbol(c, "PyGILState_Check", &has_gil);
    test_time_limit(60);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(extipy_call_soon(c, note_call, &called), 0);
        while (sem_wait(&called) != 0)
            continue;
    }
    test_time_limit(0);
    host_close(c);
}

static void a_thread_that_leaves_calls(void **state)
{
    struct extipy_ctx *c = host_open();
    sem_t called;

    (void)state;
    sem_init(&called, 0, 0);
    host_symbol(c, "PyGILState_Check", &has_gil);
    assert_int_equal(extipy_enter(c, NULL), 0);
    assert_int_equal(extipy_call_soon(c, note_call, &called), 0);
    assert_int_not_equal(sem_trywait(&called), 0);
    assert_int_equal(extipy_leave(c, NULL), 0);
    test_time_limit(60);
    while (sem_wait(&called) != 0)
        continue;
    test_time_limit(0);
    assert_int_not_equal(sem_trywait(&called), 0);
    host_close(c);
}

static void what_was_to_be_called_is_called_at_the_end(void **state)
{
    sem_t called;
    int value = 0;

    (void)state;
    for (int i = 0; i < 5; i++) {
        struct extipy_ctx *c = host_open();

        sem_init(&called, 0, 0);
        host_symbol(c, "PyGILState_Check", &has_gil);
        assert_int_equal(extipy_call_soon(c, note_call, &called), 0);
        host_close(c);
        sem_getvalue(&called, &value);
        assert_int_equal(value, 1);
    }
}

static void releasing_meets_closing(void **state)
{
    struct extipy_object *thing[200];
    pthread_t other;

    (void)state;
    for (int round = 0; round < 5; round++) {
        struct extipy_ctx *c = open_with_things();

        for (int i = 0; i < 200; i++)
            thing[i] = new_thing(c);
        assert_int_equal(pthread_create(&other, NULL, release_slowly, thing), 0);
        host_close(c);
        assert_int_equal(pthread_join(other, NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(a_handle_is_called),
        exti_test(a_handle_goes_home_as_the_object),
        exti_test(a_result_can_be_told_to_stay),
        exti_test(another_context_refuses_it),
        exti_test(an_object_has_one_handle),
        exti_test(releasing_meets_asking),
        exti_test(releasing_waits_for_nobody),
        exti_test(an_idle_context_releases_at_once),
        exti_test(any_thread_releases),
        exti_test(handles_outlive_their_context),
        exti_test(releasing_meets_closing),
        exti_test(an_idle_context_calls_at_once),
        exti_test(a_thread_that_leaves_calls),
        exti_test(what_was_to_be_called_is_called_at_the_end),
    };

    return cmocka_run_group_tests_name("python/objects", tests, NULL, NULL);
}
