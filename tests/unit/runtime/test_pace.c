/* Waiting for a processor, with threads that use one and threads that wait. */
#include "tests/support/exti_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/pace.h"
#include "runtime/system.h"

#define NO_THREAD UINT64_MAX

/* Static: after a failure its thread goes on. */
struct worker {
    pthread_t thread;
    _Atomic uint64_t number;
    struct pyrt_gate gate;
    atomic_bool stop;
    bool busy;
};

static void *work(void *arg)
{
    struct worker *w = arg;

    w->number = pyrt_thread_number();
    while (w->busy && !w->stop)
        continue;
    if (!w->busy)
        pyrt_gate_pass(&w->gate);
    return NULL;
}

/* There threads that are busy wait for each other at times. */
static void skip_where_threads_take_turns(void)
{
    if (test_under_valgrind())
        skip_because("valgrind runs one thread at a time");
    if (test_is_emulated())
        skip_because("an emulator's threads wait while one of them translates");
}

static void start(struct worker *w, bool busy)
{
    *w = (struct worker){.busy = busy};
    pyrt_gate_init(&w->gate);
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
    while (!w->number)
        continue;
}

static void end_work(struct worker *w)
{
    w->stop = true;
    pyrt_gate_open(&w->gate);
    assert_int_equal(pthread_join(w->thread, NULL), 0);
}

/* In a while. */
static bool comes_to(uint64_t number, bool runs)
{
    for (int ms = 0; ms < 5000 && pyrt_thread_runs(number) != runs; ms++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return pyrt_thread_runs(number) == runs;
}

/* What is asked about, and how often; from the `until`th time on it is a thread that has ended. */
struct question {
    uint64_t number;
    int asked, until;
};

static uint64_t answer(void *user, int i)
{
    struct question *q = user;

    (void)i;
    return ++q->asked > q->until ? NO_THREAD : q->number;
}

static int times_asked(uint64_t number, int until, int most)
{
    struct question q = {number, 0, until};

    pyrt_pace_await(answer, &q, 1, most);
    return q.asked;
}

static void a_thread_runs_waits_or_has_ended(void **state)
{
    static struct worker busy, idle;

    (void)state;
    skip_where_threads_take_turns();
    start(&busy, true);
    start(&idle, false);
    assert_true(comes_to(busy.number, true));
    assert_true(comes_to(idle.number, false));
    end_work(&busy);
    assert_true(comes_to(busy.number, false)); /* it is joined before the system has forgotten it */
    assert_false(pyrt_thread_runs(NO_THREAD));
    end_work(&idle);
}

static void nobody_waits_for_threads_that_wait_or_have_ended(void **state)
{
    static struct worker idle;

    (void)state;
    start(&idle, false);
    assert_true(comes_to(idle.number, false));
    assert_int_equal(times_asked(idle.number, 1000, 1), 2);
    assert_int_equal(times_asked(NO_THREAD, 1000, 1), 2);
    end_work(&idle);
}

static void a_thread_that_runs_is_waited_for(void **state)
{
    static struct worker busy;

    (void)state;
    skip_where_threads_take_turns();
    start(&busy, true);
    assert_true(comes_to(busy.number, true));
    /* A processor for each of two. */
    assert_int_equal(times_asked(busy.number, 1000, 2), 2);
    assert_int_equal(times_asked(busy.number, 10, 1), 12);
    /* One that is about to run counts. */
    assert_int_equal(times_asked(0, 10, 1), 12);
    end_work(&busy);
}

static void but_not_for_ever(void **state)
{
    static struct worker busy;

    (void)state;
    skip_where_threads_take_turns();
    start(&busy, true);
    assert_in_range(times_asked(busy.number, 1000000, 1), 3, 1000);
    end_work(&busy);
}

static void *enter(void *inside)
{
    pyrt_pace_enter();
    (*(atomic_int *)inside)++;
    return NULL;
}

/* One more than there are processors waits until one of them has left. */
static void as_many_enter_as_there_are_processors(void **state)
{
    const int most = pyrt_processors();
    struct pyrt_gate gate;
    atomic_int inside = 0;
    pthread_t last;

    (void)state;
    pyrt_gate_init(&gate);
    for (int i = 0; i < most; i++)
        pyrt_pace_enter();
    assert_int_equal(pthread_create(&last, NULL, enter, &inside), 0);
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    assert_int_equal(inside, 0);
    pyrt_pace_leave();
    assert_int_equal(pthread_join(last, NULL), 0);
    assert_int_equal(inside, 1);
    for (int i = 0; i < most; i++)
        pyrt_pace_leave();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_runs_waits_or_has_ended),
        cmocka_unit_test(nobody_waits_for_threads_that_wait_or_have_ended),
        cmocka_unit_test(a_thread_that_runs_is_waited_for),
        cmocka_unit_test(but_not_for_ever),
        cmocka_unit_test(as_many_enter_as_there_are_processors),
    };

    return cmocka_run_group_tests_name("runtime/pace", tests, NULL, NULL);
}
