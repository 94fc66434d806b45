/* Running jobs are interrupted, by the program and at their deadlines, and no others are. */
#include "tests/python/support/host.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MILLISECONDS UINT64_C(1000000)
#define HOURS (UINT64_C(3600000) * MILLISECONDS)

static struct extipy_ctx *ctx;

static int open_context(void **state)
{
    (void)state;
    ctx = host_open();
    host_define_block(ctx);
    host_run(ctx, "ran, caught = [], []\n"
                  "def note(n):\n"
                  "    ran.append(n)\n"
                  "    for i in range(50): pass\n"
                  "    return n\n"
                  "def spin(n):\n"
                  "    while True: pass\n"
                  "def block_and_spin(n):\n"
                  "    block(n)\n"
                  "    while True: pass\n"
                  "def catch(n):\n"
                  "    for i in range(n):\n"
                  "        try: block_and_spin(n)\n"
                  "        except BaseException as e: caught.append(type(e))\n"
                  "    return len(caught)\n");
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    host_close(ctx);
    return 0;
}

#define with_context(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)

static struct extipy_job *submit(const char *function, long n, uint64_t timeout)
{
    struct extipy_job_opts opts = {.size = sizeof opts, .timeout = timeout};

    return host_submit(ctx, function, n, &opts);
}

static void assert_raised(struct extipy_job *job, const char *type)
{
    struct extipy_exception *e = NULL;

    assert_int_equal(extipy_job_wait(job, -1, NULL), 0);
    assert_int_equal(extipy_job_result(job, NULL, &e, NULL), EXTIPY_E_RAISED);
    assert_non_null(e);
    assert_string_equal(e->type, type);
    extipy_exception_free(e);
    extipy_job_release(job);
}

static void assert_others_run(void)
{
    long n = -1;

    for (int i = 0; i < 20; i++) {
        assert_int_equal(host_end(submit("__main__:note", i, 0), &n), 0);
        assert_int_equal(n, i);
    }
}

/* ---- by the program ---- */

static void an_endless_job_is_interrupted(void **state)
{
    struct extipy_job *job;
    struct exti_error err = {0};

    (void)state;
    for (int i = 0; i < 10; i++) {
        job = submit("__main__:spin", 0, 0);
        while (extipy_job_interrupt(job, &err) == EXTIPY_E_STATE)
            sched_yield();
        extipy_job_wait(job, -1, NULL);
        assert_int_equal(extipy_job_result(job, NULL, NULL, &err), EXTIPY_E_RAISED);
        assert_says(&err, "KeyboardInterrupt");
        extipy_job_release(job);
        assert_others_run();
    }
}

static void only_what_runs_is_interrupted(void **state)
{
    struct extipy_job *first = submit("__main__:block_and_spin", 1, 0);
    struct extipy_job *second = submit("__main__:note", 2, 0);
    struct exti_error err = {0};

    (void)state;
    host_await_blocked();
    assert_int_equal(extipy_job_interrupt(second, &err), EXTIPY_E_STATE);
    assert_int_equal(extipy_job_interrupt(NULL, &err), EXTI_E_ARG);
    assert_ok(extipy_job_interrupt(first, &err), &err);
    host_unblock();
    assert_ok(extipy_job_wait(first, -1, &err), &err);
    assert_int_equal(extipy_job_interrupt(first, &err), EXTIPY_E_STATE);
    assert_int_equal(host_end(first, NULL), EXTIPY_E_RAISED);
    assert_int_equal(host_end(second, NULL), 0);
    assert_int_equal(host_long(ctx, "ran == [2]"), 1);
}

/* It is sent while native code runs, which is the last thing that the job does. */
static void an_interrupt_that_comes_too_late_reaches_nobody(void **state)
{
    struct extipy_call get = {.size = sizeof get, .function = "__main__:get", .stay = 1};
    struct extipy_call call = {.size = sizeof call};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *native = NULL;
    struct exti_error err = {0};
    struct extipy_job *job;

    (void)state;
    host_run(ctx, "def get(): return _block");
    assert_ok(extipy_call(ctx, &get, &native, NULL, &err), &err);
    assert_int_equal(extipy_value(native, 1, &value), 0);
    call.callee = value.object;
    for (int i = 0; i < 20; i++) {
        assert_ok(extipy_submit(&job, ctx, &call, NULL, &err), &err);
        host_await_blocked();
        assert_ok(extipy_job_interrupt(job, &err), &err);
        usleep(2000); /* for it to be sent; if it is not, that is no fault */
        host_unblock();
        assert_int_equal(host_end(job, NULL), 0);
        assert_others_run();
    }
    extipy_values_free(native);
}

static void python_code_may_catch_it(void **state)
{
    struct extipy_job *job = submit("__main__:catch", 3, 0);
    struct exti_error err = {0};
    long n = -1;

    (void)state;
    for (int i = 0; i < 3; i++) {
        host_await_blocked();
        assert_ok(extipy_job_interrupt(job, &err), &err);
        host_unblock();
    }
    assert_int_equal(host_end(job, &n), 0);
    assert_int_equal(n, 3);
    assert_int_equal(host_long(ctx, "caught == [KeyboardInterrupt] * 3"), 1);
}

/* ---- deadlines ---- */

static void a_running_job_is_interrupted_at_its_deadline(void **state)
{
    uint64_t timeout = 20 * MILLISECONDS;
    struct extipy_job *job;
    int rc;

    (void)state;
    /* On a slow machine the first may not even have begun by then. */
    do {
        job = extipy_job_keep(submit("__main__:spin", 0, timeout));
        rc = host_end(job, NULL);
        timeout *= 2;
        if (rc == EXTIPY_E_TIMEOUT)
            extipy_job_release(job);
    } while (rc == EXTIPY_E_TIMEOUT);
    assert_raised(job, "TimeoutError");
    assert_others_run();
}

static void note_thread(struct extipy_job *job, void *user)
{
    (void)job;
    *(pthread_t *)user = pthread_self();
}

static void a_job_that_has_not_begun_by_then_does_not_run(void **state)
{
    pthread_t told = pthread_self();
    struct extipy_job_opts opts = {
        .size = sizeof opts, .timeout = 1, .done = note_thread, .user = &told};
    struct extipy_job *running = submit("__main__:block", 1, 0), *jobs[4];
    struct exti_error err = {0};

    (void)state;
    host_await_blocked();
    jobs[0] = submit("__main__:note", 10, HOURS);
    jobs[1] = submit("__main__:note", 11, 2 * MILLISECONDS);
    jobs[2] = host_submit(ctx, "__main__:note", 12, &opts);
    jobs[3] = submit("__main__:note", 13, UINT64_MAX);
    /* While the first one still runs. */
    for (int i = 1; i < 3; i++) {
        assert_ok(extipy_job_wait(jobs[i], -1, &err), &err);
        assert_int_equal(extipy_job_result(jobs[i], NULL, NULL, &err), EXTIPY_E_TIMEOUT);
        assert_says(&err, "before it began");
    }
    assert_false(pthread_equal(told, pthread_self()));
    assert_int_equal(extipy_job_wait(jobs[0], 0, &err), EXTIPY_E_TIMEOUT);
    host_unblock();
    assert_int_equal(host_end(running, NULL), 0);
    assert_int_equal(host_end(jobs[0], NULL), 0);
    assert_int_equal(host_end(jobs[1], NULL), EXTIPY_E_TIMEOUT);
    assert_int_equal(host_end(jobs[2], NULL), EXTIPY_E_TIMEOUT);
    assert_int_equal(host_end(jobs[3], NULL), 0);
    assert_int_equal(host_long(ctx, "ran == [10, 13]"), 1);
}

static void deadlines_are_kept_in_any_order(void **state)
{
    struct extipy_job *running = submit("__main__:block", 1, 0), *jobs[60];
    uint64_t timeout;

    (void)state;
    host_await_blocked();
    for (int i = 0; i < 60; i++) {
        timeout = (uint64_t)(i * 37 % 60 + 1);
        jobs[i] = submit("__main__:note", i, timeout * (i % 3 ? MILLISECONDS : HOURS));
    }
    for (int i = 0; i < 60; i++)
        if (i % 3)
            assert_int_equal(host_end(jobs[i], NULL), EXTIPY_E_TIMEOUT);
    host_unblock();
    assert_int_equal(host_end(running, NULL), 0);
    for (int i = 0; i < 60; i += 3)
        assert_int_equal(host_end(jobs[i], NULL), 0);
    assert_int_equal(host_long(ctx, "ran == list(range(0, 60, 3))"), 1);
}

/* ---- many threads ---- */

#define THREADS 8
#define EACH 60

/* A third of the jobs is interrupted over and over, and a third has a deadline that is near. */
static void *submit_and_interrupt(void *arg)
{
    int kind = (int)(intptr_t)arg % 3, rc;
    struct extipy_job *job;

    for (int i = 0; i < EACH; i++) {
        job = submit("__main__:note", i, kind == 1 ? (uint64_t)i * 100000 + 1 : 0);
        while (kind == 2 && extipy_job_wait(job, 0, NULL) == EXTIPY_E_TIMEOUT)
            extipy_job_interrupt(job, NULL);
        rc = host_end(job, NULL);
        if (kind == 0 || (rc != EXTIPY_E_RAISED && (kind == 2 || rc != EXTIPY_E_TIMEOUT)))
            host_must(rc);
    }
    return NULL;
}

static atomic_int stop;

/* Neither do interrupts reach other threads in the context. */
static void *run_beside(void *arg)
{
    (void)arg;
    while (!stop)
        host_must(extipy_exec(ctx, "for i in range(1000): pass", NULL, NULL));
    return NULL;
}

static void interrupts_reach_their_jobs_alone(void **state)
{
    pthread_t threads[THREADS], beside;

    (void)state;
    stop = 0;
    assert_int_equal(pthread_create(&beside, NULL, run_beside, NULL), 0);
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, submit_and_interrupt, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    stop = 1;
    pthread_join(beside, NULL);
    assert_others_run();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_context(an_endless_job_is_interrupted),
        with_context(only_what_runs_is_interrupted),
        with_context(an_interrupt_that_comes_too_late_reaches_nobody),
        with_context(python_code_may_catch_it),
        with_context(a_running_job_is_interrupted_at_its_deadline),
        with_context(a_job_that_has_not_begun_by_then_does_not_run),
        with_context(deadlines_are_kept_in_any_order),
        with_context(interrupts_reach_their_jobs_alone),
    };

    return cmocka_run_group_tests_name("python/interrupts", tests, NULL, NULL);
}
