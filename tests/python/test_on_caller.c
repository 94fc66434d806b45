/* Contexts whose main thread is the program's. */
#include "tests/python/support/host.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct extipy_opts on_caller = {.size = sizeof on_caller, .on_caller = 1};

static struct extipy_ctx *open_with(const struct extipy_opts *opts)
{
    struct exti_error err = {0};
    struct extipy_ctx *c = NULL;

    assert_ok(extipy_open(&c, host_python(), opts, &err), &err);
    return c;
}

static struct extipy_ctx *open_here(void)
{
    return open_with(&on_caller);
}

static pthread_t start(void *(*run)(void *), void *arg)
{
    pthread_t t;

    assert_int_equal(pthread_create(&t, NULL, run, arg), 0);
    return t;
}

static const char is_main[] = "import threading\n"
                              "assert threading.current_thread() is threading.main_thread()\n";
static const char is_not_main[] =
    "import threading\n"
    "assert threading.current_thread() is not threading.main_thread()\n";

static void *run_beside(void *arg)
{
    host_must(extipy_exec(arg, is_not_main, NULL, NULL));
    return NULL;
}

static void the_caller_is_pythons_main_thread(void **state)
{
    struct extipy_ctx *c = open_here();

    (void)state;
    for (int i = 0; i < 3; i++)
        host_run(c, is_main);
    pthread_join(start(run_beside, c), NULL);
    assert_int_equal(extipy_detach(c, NULL), 0);
    host_run(c, is_main);
    host_close(c);
    /* And of as many as it opens. */
    for (int i = 0; i < 5; i++) {
        c = open_here();
        host_run(c, is_main);
        host_close(c);
    }
}

static void contexts_of_one_thread_nest(void **state)
{
    struct extipy_ctx *own = host_open(), *a, *b;

    (void)state;
    host_must(extipy_enter(own, NULL));
    a = open_here();
    host_must(extipy_enter(a, NULL));
    b = open_here();
    host_run(b, is_main);
    host_run(own, is_not_main);
    host_must(host_run_inside(a, is_main));
    host_close(b);
    host_must(host_run_inside(a, "again = 1"));
    host_must(extipy_leave(a, NULL));
    host_close(a);
    host_must(host_run_inside(own, "again = 1"));
    host_must(extipy_leave(own, NULL));
    host_close(own);
}

/* A thread of the context's own releases, interrupts, and tells of jobs that do not run. */
static void what_is_done_while_nobody_is_inside_is_done(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:Told", .stay = 1};
    struct extipy_job_opts late = {.size = sizeof late, .timeout = 1};
    struct extipy_ctx *c = open_here();
    struct extipy_values *result;
    struct extipy_job *job, *expired, *cancelled;
    struct test *t = *state;
    char *path = test_path(t, "told");
    long n = -1;

    host_run(c, test_format(t,
                            "def same(n): return n\n"
                            "def spin(n):\n"
                            "    block(n)\n"
                            "    while True: pass\n"
                            "class Told:\n"
                            "    def __del__(self): open('%s', 'w').close()\n",
                            path));
    assert_ok(extipy_call(c, &call, &result, NULL, &t->err), &t->err);
    extipy_values_free(result);
    while (access(path, F_OK) != 0)
        usleep(1000);
    host_define_block(c);
    job = host_submit(c, "__main__:block", 4, NULL);
    host_await_blocked();
    cancelled = host_submit(c, "__main__:same", 5, NULL);
    expired = host_submit(c, "__main__:same", 6, &late);
    assert_int_equal(extipy_job_cancel(cancelled, NULL), 0);
    assert_int_equal(host_end(cancelled, NULL), EXTIPY_E_CANCELLED);
    assert_int_equal(host_end(expired, NULL), EXTIPY_E_TIMEOUT);
    host_unblock();
    assert_int_equal(host_end(job, &n), 0);
    assert_int_equal(n, 4);
    job = host_submit(c, "__main__:spin", 1, NULL);
    host_await_blocked();
    assert_int_equal(extipy_job_interrupt(job, NULL), 0);
    host_unblock();
    assert_int_equal(host_end(job, NULL), EXTIPY_E_RAISED);
    host_close(c);
}

static void *close_elsewhere(void *arg)
{
    struct exti_error err = {0};

    host_must(extipy_close(arg, NULL, NULL, NULL, &err) == EXTIPY_E_PLACE ? 0 : EXTI_E_ARG);
    host_must(strstr(err.message, "only the thread that opened") ? 0 : EXTI_E_ARG);
    /* Also if it has been inside. */
    host_must(extipy_exec(arg, "x = 1", NULL, NULL));
    host_must(extipy_close(arg, NULL, NULL, NULL, NULL) == EXTIPY_E_PLACE ? 0 : EXTI_E_ARG);
    return NULL;
}

static void only_that_thread_closes_it(void **state)
{
    struct extipy_ctx *c = open_here();

    (void)state;
    pthread_join(start(close_elsewhere, c), NULL);
    host_must(extipy_enter(c, NULL));
    assert_int_equal(extipy_close(c, NULL, NULL, NULL, NULL), EXTIPY_E_PLACE);
    host_must(host_run_inside(c, is_main));
    host_must(extipy_leave(c, NULL));
    host_close(c);
}

static void buffers_put_its_end_off(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "builtins:bytearray", .stay = 1};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_ctx *c = open_here();
    struct extipy_values *result;
    struct extipy_buffer *buffer;
    struct test *t = *state;
    long n = -1;

    assert_ok(extipy_call(c, &call, &result, NULL, &t->err), &t->err);
    assert_int_equal(extipy_value(result, 1, &value), 0);
    assert_ok(extipy_buffer_of(&buffer, value.object, 0, NULL, &t->err), &t->err);
    extipy_values_free(result);
    host_run(c, "def same(n): return n");
    assert_int_equal(host_end(host_submit(c, "__main__:same", 1, NULL), &n), 0);
    assert_int_equal(extipy_close(c, NULL, NULL, NULL, &t->err), EXTI_E_BUSY);
    assert_says(&t->err, "buffers");
    host_run(c, is_main);
    assert_int_equal(host_end(host_submit(c, "__main__:same", 2, NULL), &n), 0);
    assert_int_equal(n, 2);
    extipy_buffer_release(buffer);
    host_close(c);
}

/* ---- the end ---- */

static struct extipy_ctx *ending;
static atomic_int calls, wrong;

/* Enters the context that prints, and may not close it, while it is finalised too. */
static void enter_from_output(void *user, enum extipy_stream stream, const char *text,
                              size_t length)
{
    (void)user;
    (void)stream;
    (void)length;
    if (strncmp(text, "enter", 5) != 0)
        return;
    calls++;
    wrong += extipy_exec(ending, "entered = 1", NULL, NULL) != 0;
    wrong += extipy_close(ending, NULL, NULL, NULL, NULL) != EXTIPY_E_PLACE;
}

static void the_end_is_pythons(void **state)
{
    struct extipy_opts opts = {.size = sizeof opts, .on_caller = 1, .output = enter_from_output};
    struct test *t = *state;
    char *path = test_path(t, "said");

    calls = wrong = 0;
    ending = open_with(&opts);
    host_run(ending, test_format(t,
                                 "import atexit, threading, time\n"
                                 "def say(what):\n"
                                 "    with open('%s', 'a') as f: f.write(what)\n"
                                 "def last():\n"
                                 "    assert threading.current_thread() is main\n"
                                 "    print('enter')\n"
                                 "    say('atexit %%d' %% entered)\n"
                                 "def work():\n"
                                 "    time.sleep(0.1); say('thread ')\n"
                                 "main = threading.main_thread()\n"
                                 "atexit.register(last)\n"
                                 "threading.Thread(target=work).start()\n"
                                 "print('enter')\n",
                                 path));
    assert_int_equal(calls, 1);
    host_close(ending);
    assert_string_equal(test_read(t, path, NULL), "thread atexit 1");
    assert_int_equal(calls, 2);
    assert_int_equal(wrong, 0);
}

static void a_start_that_fails_leaves_the_thread_as_it_was(void **state)
{
    struct extipy_ctx *c = NULL;
    struct test *t = *state;

    setenv("PYTHONHASHSEED", "many", 1);
    assert_int_equal(extipy_open(&c, host_python(), &on_caller, &t->err), EXTI_E_LOAD);
    unsetenv("PYTHONHASHSEED");
    assert_says(&t->err, "PYTHONHASHSEED");
    assert_null(c);
    c = open_here();
    host_run(c, is_main);
    host_close(c);
}

static void *open_use_close(void *arg)
{
    struct extipy_ctx *c = NULL;

    (void)arg;
    for (int i = 0; i < 3; i++) {
        host_must(extipy_open(&c, host_python(), &on_caller, NULL));
        host_must(extipy_exec(c, is_main, NULL, NULL));
        host_must(extipy_close(c, NULL, NULL, NULL, NULL));
    }
    return NULL;
}

static void many_threads_have_their_own(void **state)
{
    pthread_t t[4];

    (void)state;
    host_python();
    for (int i = 0; i < 4; i++)
        t[i] = start(open_use_close, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}

static atomic_int inside;

/* Who is inside keeps the context. */
static void *stay_until_closed(void *arg)
{
    struct extipy_call call = {.size = sizeof call, .function = "builtins:int"};
    int rc;

    host_must(extipy_enter(arg, NULL));
    inside++;
    while ((rc = extipy_submit(NULL, arg, &call, NULL, NULL)) == 0)
        host_must(extipy_exec(arg, "import time; time.sleep(0)", NULL, NULL));
    host_must(rc == EXTIPY_E_CLOSED ? 0 : rc);
    inside--;
    host_must(extipy_leave(arg, NULL));
    return NULL;
}

static void closing_waits_until_nobody_is_inside(void **state)
{
    struct extipy_ctx *c = open_here();
    pthread_t t[4];

    (void)state;
    inside = 0;
    for (int i = 0; i < 4; i++)
        t[i] = start(stay_until_closed, c);
    while (inside < 4)
        sched_yield();
    host_must(extipy_close(c, NULL, NULL, NULL, NULL));
    assert_int_equal(inside, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(the_caller_is_pythons_main_thread),
        exti_test(contexts_of_one_thread_nest),
        exti_test(what_is_done_while_nobody_is_inside_is_done),
        exti_test(only_that_thread_closes_it),
        exti_test(buffers_put_its_end_off),
        exti_test(the_end_is_pythons),
        exti_test(a_start_that_fails_leaves_the_thread_as_it_was),
        exti_test(many_threads_have_their_own),
        exti_test(closing_waits_until_nobody_is_inside),
    };

    return cmocka_run_group_tests_name("python/on_caller", tests, NULL, NULL);
}
