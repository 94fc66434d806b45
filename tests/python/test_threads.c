/* Host threads enter contexts, nested and in circles, leave them and detach. */
#include "tests/python/support/host.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct extipy_ctx *ctx[3]; /* A, B and C */

static void open_all(int count)
{
    for (int i = 0; i < count; i++)
        ctx[i] = host_open();
}

static void close_all(int count)
{
    for (int i = 0; i < count; i++)
        host_close(ctx[i]);
}

/* Not for assertions: those jump, which only the test's own thread may. */
static void must(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "a call failed: %s\n", extipy_code_name(rc));
    abort();
}

static void enter(int i)
{
    must(extipy_enter(ctx[i], NULL));
}

static void leave(int i)
{
    must(extipy_leave(ctx[i], NULL));
}

static void run_inside(int i, const char *source)
{
    must(host_run_inside(ctx[i], source));
}

static void start(pthread_t *t, void *(*run)(void *), void *arg)
{
    assert_int_equal(pthread_create(t, NULL, run, arg), 0);
}

static void join(pthread_t t)
{
    assert_int_equal(pthread_join(t, NULL), 0);
}

/* ---- entering ---- */

static void entering_nests(void **state)
{
    struct test *t = *state;

    open_all(1);
    enter(0);
    run_inside(0, "x = 1");
    enter(0);
    run_inside(0, "x += 1");
    leave(0);
    run_inside(0, "x += 1");
    leave(0);
    assert_int_equal(host_long(ctx[0], "x"), 3);
    assert_int_equal(extipy_leave(ctx[0], &t->err), EXTIPY_E_PLACE);
    close_all(1);
}

static void leaving_goes_the_way_back(void **state)
{
    struct test *t = *state;

    open_all(2);
    enter(0);
    enter(1);
    assert_int_equal(extipy_leave(ctx[0], &t->err), EXTIPY_E_PLACE);
    assert_int_equal(extipy_leave(NULL, &t->err), EXTIPY_E_PLACE);
    run_inside(1, "pass");
    leave(1);
    run_inside(0, "pass");
    leave(0);
    assert_int_equal(extipy_enter(NULL, &t->err), EXTI_E_ARG);
    close_all(2);
}

static void a_gil_that_was_let_go_is_noticed(void **state)
{
    void *(*save)(void), (*restore)(void *), *saved;
    struct test *t = *state;

    open_all(1);
    host_symbol(ctx[0], "PyEval_SaveThread", &save);
    host_symbol(ctx[0], "PyEval_RestoreThread", &restore);
    enter(0);
    saved = save();
    assert_int_equal(extipy_leave(ctx[0], &t->err), EXTIPY_E_PLACE);
    /* Inside, but without the GIL: as from a function that ctypes calls. */
    enter(0);
    run_inside(0, "pass");
    leave(0);
    restore(saved);
    leave(0);
    close_all(1);
}

static sem_t arrived, go_on;

static void *enter_and_say(void *arg)
{
    (void)arg;
    enter(0);
    run_inside(0, "seen = True");
    leave(0);
    sem_post(&arrived);
    return NULL;
}

static int wait_for(sem_t *s)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    return sem_timedwait(s, &until);
}

static void entering_another_lets_go_of_the_first(void **state)
{
    pthread_t t;

    (void)state;
    sem_init(&arrived, 0, 0);
    open_all(2);
    enter(0);
    enter(1);
    start(&t, enter_and_say, NULL);
    assert_int_equal(wait_for(&arrived), 0);
    join(t);
    leave(1);
    run_inside(0, "assert seen");
    leave(0);
    close_all(2);
}

/* ---- circles ---- */

static atomic_int signals_seen;

static void count_signal(int sig)
{
    (void)sig;
    signals_seen++;
}

/* Where an exception is raised and caught, with a call through another context between. */
static void visit(const int *path, int count)
{
    enter(path[0]);
    run_inside(path[0],
               "try: raise ValueError(1)\nexcept ValueError: n = globals().get('n', 0) + 1");
    if (count > 1)
        visit(path + 1, count - 1);
    run_inside(path[0], "n += 1");
    leave(path[0]);
}

#define ROUNDS 300

struct walk {
    int path[6], count;
};

static void *walk_round(void *arg)
{
    const struct walk *w = arg;

    for (int i = 0; i < ROUNDS; i++)
        visit(w->path, w->count);
    return NULL;
}

static void walk_both_ways(struct walk one, struct walk other)
{
    struct sigaction act = {.sa_handler = count_signal}, old;
    pthread_t t[2];

    open_all(3);
    sigaction(SIGUSR1, &act, &old);
    signals_seen = 0;
    start(&t[0], walk_round, &one);
    start(&t[1], walk_round, &other);
    for (int i = 0; i < 50; i++) {
        pthread_kill(t[i % 2], SIGUSR1);
        usleep(500);
    }
    join(t[0]);
    join(t[1]);
    sigaction(SIGUSR1, &old, NULL);
    assert_true(signals_seen > 0);
}

/* A thread that has ended cannot be sent a signal, so the joining comes after these. */
static void back_and_forth_in_both_directions(void **state)
{
    long n;

    (void)state;
    test_time_limit(300);
    walk_both_ways((struct walk){{0, 1, 0}, 3}, (struct walk){{1, 0, 1}, 3});
    n = host_long(ctx[0], "n") + host_long(ctx[1], "n");
    assert_in_range(n, 1, 2 * 2 * 3 * ROUNDS);
    test_time_limit(0);
    close_all(3);
}

static void around_in_both_directions(void **state)
{
    (void)state;
    test_time_limit(300);
    walk_both_ways((struct walk){{0, 1, 2, 0}, 4}, (struct walk){{0, 2, 1, 0}, 4});
    test_time_limit(0);
    close_all(3);
}

/* ---- from Python ---- */

/* Called by Python in A: by CDLL without its GIL, by PyDLL with it. */
static long call_through(int to)
{
    long n;

    enter(to);
    enter(0);
    run_inside(0, "calls = globals().get('calls', 0) + 1");
    leave(0);
    leave(to);
    n = host_long(ctx[to], "6 * 7");
    return n;
}

static void python_calls_the_host_which_enters(void **state)
{
    struct test *t = *state;

    test_time_limit(300);
    open_all(2);
    host_run(ctx[0], test_format(t,
                                 "import ctypes, threading\n"
                                 "kinds = ctypes.CFUNCTYPE, ctypes.PYFUNCTYPE\n"
                                 "f, g = [k(ctypes.c_long, ctypes.c_int)(%lu) for k in kinds]\n"
                                 "assert f(1) == g(1) == 42 and calls == 2\n"
                                 "said = []\n"
                                 "def work(): said.append((f(1), g(1), f(0), g(0)))\n"
                                 "t = [threading.Thread(target=work) for _ in range(4)]\n"
                                 "for x in t: x.start()\n"
                                 "for x in t: x.join()\n"
                                 "assert said == [(42,) * 4] * 4, said\n",
                                 host_address(call_through)));
    test_time_limit(0);
    close_all(2);
}

/* ---- detaching ---- */

static const char local_object[] = "import threading, weakref\n"
                                   "local = globals().setdefault('local', threading.local())\n"
                                   "class Thing: pass\n"
                                   "local.thing = Thing()\n"
                                   "ended = globals().setdefault('ended', [])\n"
                                   "weakref.finalize(local.thing, ended.append, 1)\n";

static void detaching_ends_the_threads_objects(void **state)
{
    struct test *t = *state;

    open_all(2);
    host_run(ctx[0], local_object);
    host_run(ctx[0], "assert hasattr(local, 'thing') and not ended");
    enter(0);
    assert_int_equal(extipy_detach(ctx[0], &t->err), EXTIPY_E_PLACE);
    leave(0);
    enter(1);
    assert_ok(extipy_detach(ctx[0], &t->err), &t->err);
    run_inside(1, "pass");
    leave(1);
    assert_ok(extipy_detach(ctx[0], &t->err), &t->err);
    host_run(ctx[0], "assert not hasattr(local, 'thing') and ended");
    close_all(2);
}

static void *attach_and_end(void *arg)
{
    (void)arg;
    enter(0);
    enter(1);
    run_inside(1, local_object);
    leave(1);
    run_inside(0, local_object);
    leave(0);
    return NULL;
}

static void a_thread_that_ends_is_detached(void **state)
{
    pthread_t t;

    (void)state;
    open_all(2);
    for (int i = 0; i < 20; i++) {
        start(&t, attach_and_end, NULL);
        join(t);
    }
    assert_int_equal(host_long(ctx[0], "len(ended)"), 20);
    assert_int_equal(host_long(ctx[1], "len(ended)"), 20);
    close_all(2);
}

static void *end_inside(void *arg)
{
    (void)arg;
    enter(0);
    enter(1);
    pthread_exit(NULL);
}

static void a_thread_that_ends_inside_holds_nobody_up(void **state)
{
    pthread_t t;

    (void)state;
    open_all(2);
    start(&t, end_inside, NULL);
    join(t);
    host_run(ctx[0], "x = 1");
    host_run(ctx[1], "x = 1");
    close_all(2);
}

/* ---- closing ---- */

static void *attach_and_stay(void *arg)
{
    (void)arg;
    enter(0);
    run_inside(0, local_object);
    leave(0);
    sem_post(&arrived);
    sem_wait(&go_on);
    return NULL;
}

static int count_finding(void *user, const struct exti_error *finding)
{
    int *threads = user;

    *threads += strstr(finding->message, "thread") != NULL;
    return 0;
}

static void closing_tells_who_has_not_detached(void **state)
{
    struct extipy_closed closed = {.size = sizeof closed};
    struct test *t = *state;
    int threads = 0;
    pthread_t other;

    sem_init(&arrived, 0, 0);
    sem_init(&go_on, 0, 0);
    open_all(1);
    start(&other, attach_and_stay, NULL);
    assert_int_equal(wait_for(&arrived), 0);
    assert_ok(extipy_close(ctx[0], count_finding, &threads, &closed, &t->err), &t->err);
    sem_post(&go_on);
    join(other);
    assert_int_equal(closed.attached, 1);
    assert_int_equal(closed.mapped, 0);
    assert_int_equal(threads, 0);
}

#ifdef __GLIBC__ /* which counts what malloc gives */
static int detaches;

static void *attach_to_each(void *arg)
{
    (void)arg;
    while (wait_for(&arrived) == 0 && ctx[0]) {
        enter(0);
        leave(0);
        if (detaches)
            must(extipy_detach(ctx[0], NULL));
        sem_post(&go_on);
    }
    return NULL;
}

/* How much of a closed context is left for each that a thread has been in. */
static double left_by_each(int detached, int rounds)
{
    size_t before = 0;
    pthread_t other;

    detaches = detached;
    sem_init(&arrived, 0, 0);
    sem_init(&go_on, 0, 0);
    start(&other, attach_to_each, NULL);
    for (int i = -5; i < rounds; i++) {
        if (i == 0)
            before = mallinfo2().uordblks;
        open_all(1);
        sem_post(&arrived);
        assert_int_equal(wait_for(&go_on), 0);
        assert_int_equal(extipy_close(ctx[0], NULL, NULL, NULL, NULL), 0);
    }
    before = mallinfo2().uordblks - before;
    ctx[0] = NULL;
    sem_post(&arrived);
    join(other);
    return (double)(ptrdiff_t)before / rounds;
}

static void a_thread_that_stays_keeps_nothing_of_closed_contexts(void **state)
{
    const double detached = left_by_each(1, 60), attached = left_by_each(0, 60);

    (void)state;
    print_message("%.0f and %.0f bytes are left by each\n", detached, attached);
    assert_true(attached < detached + 256);
}
#endif

static atomic_int sleeps;

/* In the place of the C library's, for the library under test too. */
__attribute__((visibility("default"))) int nanosleep(const struct timespec *span,
                                                     struct timespec *left)
{
    const int error = clock_nanosleep(CLOCK_REALTIME, 0, span, left);

    atomic_fetch_add(&sleeps, 1);
    errno = error;
    return error ? -1 : 0;
}

static void *import_threading(void *arg)
{
    enter(0);
    run_inside(0, "import threading\n"); /* whose main thread is this one */
    leave(0);
    return arg;
}

/* To the context's threading they are threads like others, which it does not join. */
static void closing_does_not_wait_for_the_programs_threads(void **state)
{
    pthread_t first;

    (void)state;
    open_all(1);
    start(&first, import_threading, NULL);
    join(first);
    enter(0);
    run_inside(0, "import threading\n"
                  "threading.current_thread().__dict__['_daemonic'] = False\n"
                  "assert not threading.current_thread().daemon\n");
    leave(0);
    atomic_store(&sleeps, 0);
    close_all(1);
    assert_in_range(atomic_load(&sleeps), 0, 100);
}

static void *enter_and_wait(void *arg)
{
    int *refused = arg;

    enter(0);
    enter(1); /* lets go of the first one's GIL */
    sem_post(&arrived);
    /* Until the context is being closed: then nobody else gets in, but who is inside does. */
    wait_for(&go_on);
    enter(0);
    run_inside(0, "late = True");
    leave(0);
    leave(1);
    run_inside(0, "assert late");
    leave(0);
    *refused = extipy_enter(ctx[0], NULL);
    return NULL;
}

static void *close_first(void *arg)
{
    (void)arg;
    must(extipy_close(ctx[0], NULL, NULL, NULL, NULL));
    return NULL;
}

static void closing_waits_for_who_is_inside(void **state)
{
    pthread_t inside, closer;
    struct test *t = *state;
    int refused = 0, rc;

    sem_init(&arrived, 0, 0);
    sem_init(&go_on, 0, 0);
    test_time_limit(300);
    open_all(2);
    start(&inside, enter_and_wait, &refused);
    assert_int_equal(wait_for(&arrived), 0);
    enter(0);
    assert_int_equal(extipy_close(ctx[0], NULL, NULL, NULL, &t->err), EXTIPY_E_PLACE);
    leave(0);
    start(&closer, close_first, NULL);
    while ((rc = extipy_enter(ctx[0], &t->err)) == 0) {
        leave(0);
        usleep(1000);
    }
    assert_int_equal(rc, EXTIPY_E_CLOSED);
    assert_int_equal(extipy_close(ctx[0], NULL, NULL, NULL, &t->err), EXTIPY_E_CLOSED);
    sem_post(&go_on);
    join(inside);
    join(closer);
    assert_int_equal(refused, EXTIPY_E_CLOSED);
    test_time_limit(0);
    host_close(ctx[1]);
}

static void *enter_until_closed(void *arg)
{
    int rc;

    (void)arg;
    enter(0);
    leave(0);
    sem_post(&arrived);
    while ((rc = extipy_enter(ctx[0], NULL)) == 0) {
        run_inside(0, "x = [1]; x *= 9");
        leave(0);
    }
    must(rc == EXTIPY_E_CLOSED ? 0 : rc);
    must(extipy_detach(ctx[0], NULL));
    return NULL;
}

static void closing_while_eight_threads_call(void **state)
{
    pthread_t t[8];

    (void)state;
    test_time_limit(300);
    for (int round = 0; round < 3; round++) {
        open_all(1);
        sem_init(&arrived, 0, 0);
        for (int i = 0; i < 8; i++)
            start(&t[i], enter_until_closed, NULL);
        for (int i = 0; i < 8; i++)
            assert_int_equal(wait_for(&arrived), 0);
        must(extipy_close(ctx[0], NULL, NULL, NULL, NULL));
        for (int i = 0; i < 8; i++)
            join(t[i]);
    }
    test_time_limit(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(entering_nests),
        exti_test(leaving_goes_the_way_back),
        exti_test(a_gil_that_was_let_go_is_noticed),
        exti_test(entering_another_lets_go_of_the_first),
        exti_test(back_and_forth_in_both_directions),
        exti_test(around_in_both_directions),
        exti_test(python_calls_the_host_which_enters),
        exti_test(detaching_ends_the_threads_objects),
        exti_test(a_thread_that_ends_is_detached),
        exti_test(a_thread_that_ends_inside_holds_nobody_up),
        exti_test(closing_tells_who_has_not_detached),
#ifdef __GLIBC__
        exti_test(a_thread_that_stays_keeps_nothing_of_closed_contexts),
#endif
        exti_test(closing_does_not_wait_for_the_programs_threads),
        exti_test(closing_waits_for_who_is_inside),
        exti_test(closing_while_eight_threads_call),
    };

    return cmocka_run_group_tests_name("python/threads", tests, NULL, NULL);
}
