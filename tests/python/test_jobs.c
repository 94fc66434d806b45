/* Jobs are submitted, run, waited for, cancelled and released, on any threads. */
#include "tests/python/support/host.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SECONDS INT64_C(1000000000)

static struct extipy_ctx *ctx;

static int open_context(void **state)
{
    (void)state;
    ctx = host_open();
    host_define_block(ctx);
    host_run(ctx, "done = []\n"
                  "def note(n):\n"
                  "    done.append(n)\n"
                  "    return n * 2\n");
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    host_close(ctx);
    return 0;
}

#define with_context(f) cmocka_unit_test_setup_teardown(f, open_context, close_context)

/* ---- what jobs do ---- */

static void jobs_run_in_their_order(void **state)
{
    struct extipy_job *jobs[100];
    long n = -1;

    (void)state;
    for (int i = 0; i < 100; i++)
        jobs[i] = host_submit(ctx, "__main__:note", i, NULL);
    for (int i = 99; i >= 0; i--) {
        assert_int_equal(host_end(jobs[i], &n), 0);
        assert_int_equal(n, 2 * i);
    }
    assert_int_equal(host_long(ctx, "done == list(range(100))"), 1);
}

static void jobs_share_a_thread_that_keeps_its_objects(void **state)
{
    long first = -1, second = -2;

    (void)state;
    host_run(ctx, "import threading\n"
                  "local = threading.local()\n"
                  "def count(n):\n"
                  "    local.n = getattr(local, 'n', 0) + n\n"
                  "    assert threading.current_thread() is not threading.main_thread()\n"
                  "    return local.n\n");
    assert_int_equal(host_end(host_submit(ctx, "__main__:count", 1, NULL), &first), 0);
    assert_int_equal(host_end(host_submit(ctx, "__main__:count", 1, NULL), &second), 0);
    assert_int_equal(first, 1);
    assert_int_equal(second, 2);
}

static void an_exception_is_given_once(void **state)
{
    struct extipy_exception *e = NULL, *none = NULL;
    struct extipy_values *result = NULL;
    struct exti_error err = {0};
    struct extipy_job *job;

    (void)state;
    host_run(ctx, "def fail(n): raise ValueError(f'no {n}')");
    job = host_submit(ctx, "__main__:fail", 7, NULL);
    assert_ok(extipy_job_wait(job, -1, &err), &err);
    assert_int_equal(extipy_job_result(job, &result, NULL, &err), EXTIPY_E_RAISED);
    assert_says(&err, "ValueError: no 7");
    assert_int_equal(extipy_job_result(job, &result, &e, NULL), EXTIPY_E_RAISED);
    assert_int_equal(extipy_job_result(job, &result, &none, NULL), EXTIPY_E_RAISED);
    assert_non_null(e);
    assert_null(none);
    assert_null(result);
    assert_string_equal(e->type, "ValueError");
    assert_contains(e->traceback, "in fail");
    extipy_exception_free(e);
    extipy_job_release(job);
}

static void a_result_is_given_once(void **state)
{
    struct extipy_values *result = NULL, *none;
    struct extipy_job *job;

    (void)state;
    job = host_submit(ctx, "__main__:note", 4, NULL);
    assert_int_equal(extipy_job_wait(job, -1, NULL), 0);
    assert_int_equal(extipy_job_result(job, NULL, NULL, NULL), 0);
    assert_int_equal(extipy_job_result(job, &result, NULL, NULL), 0);
    assert_non_null(result);
    none = result;
    assert_int_equal(extipy_job_result(job, &none, NULL, NULL), 0);
    assert_null(none);
    extipy_values_free(result);
    extipy_job_release(job);
}

static void handles_come_and_are_called(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:get"};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *v = NULL, *result = NULL;
    struct exti_error err = {0};
    struct extipy_job *job;
    long n = -1;

    (void)state;
    host_run(ctx, "def get(): return note");
    assert_ok(extipy_submit(&job, ctx, &call, NULL, &err), &err);
    assert_ok(extipy_job_wait(job, -1, &err), &err);
    assert_ok(extipy_job_result(job, &result, NULL, &err), &err);
    extipy_job_release(job);
    assert_int_equal(extipy_value(result, 1, &value), 0);
    assert_int_equal(value.kind, EXTIPY_OBJECT);
    assert_int_equal(extipy_values_new(&v, NULL), 0);
    call = (struct extipy_call){.size = sizeof call, .callee = value.object, .values = v};
    call.args = extipy_container(v, EXTIPY_LIST, (size_t[]){extipy_int(v, 21)}, 1);
    assert_ok(extipy_submit(&job, ctx, &call, NULL, &err), &err);
    /* Only the job has the handle now. */
    extipy_values_free(v);
    extipy_values_free(result);
    host_run(ctx, "del note");
    assert_int_equal(host_end(job, &n), 0);
    assert_int_equal(n, 42);
}

static void a_set_of_values_serves_many_jobs(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:note"};
    struct extipy_ctx *other = host_open();
    struct extipy_values *v = NULL;
    struct extipy_job *jobs[40];
    long n = -1;

    (void)state;
    host_run(other, "def note(n): return n * 3");
    assert_int_equal(extipy_values_new(&v, NULL), 0);
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, (size_t[]){extipy_int(v, 5)}, 1);
    for (int i = 0; i < 40; i++)
        assert_int_equal(extipy_submit(&jobs[i], i % 2 ? other : ctx, &call, NULL, NULL), 0);
    extipy_values_free(v);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(host_end(jobs[i], &n), 0);
        assert_int_equal(n, i % 2 ? 15 : 10);
    }
    host_close(other);
}

static void wrong_jobs_are_refused(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "nothing"};
    struct extipy_job *job = NULL, *queued;
    struct extipy_job_opts opts = {0};
    struct exti_error err = {0};

    (void)state;
    assert_int_equal(extipy_submit(&job, ctx, &call, NULL, &err), EXTI_E_ARG);
    assert_says(&err, "module:qualname");
    call.function = "__main__:note";
    assert_int_equal(extipy_submit(&job, ctx, &call, &opts, &err), EXTI_E_ARG);
    assert_says(&err, "the options have no size");
    assert_int_equal(extipy_submit(&job, NULL, &call, NULL, &err), EXTI_E_ARG);
    assert_int_equal(extipy_submit(&job, ctx, NULL, NULL, &err), EXTI_E_ARG);
    assert_null(job);
    assert_int_equal(extipy_job_wait(NULL, 0, &err), EXTI_E_ARG);
    assert_int_equal(extipy_job_cancel(NULL, &err), EXTI_E_ARG);
    assert_int_equal(extipy_job_result(NULL, NULL, NULL, &err), EXTI_E_ARG);
    extipy_job_release(NULL);
    assert_null(extipy_job_keep(NULL));
    /* The negative control: what is right is run, and what has not ended has no outcome. */
    queued = host_submit(ctx, "__main__:block", 3, NULL);
    host_await_blocked();
    assert_int_equal(extipy_job_result(queued, NULL, NULL, &err), EXTIPY_E_STATE);
    host_unblock();
    assert_int_equal(host_end(queued, NULL), 0);
}

/* ---- callbacks ---- */

struct told {
    pthread_t thread;
    int gil, rc, wait, closing, detaching, inside, again;
    atomic_int times;
};

/* Submits the job that it was told of a second time. */
static void note_end(struct extipy_job *job, void *user)
{
    struct extipy_job_opts opts = {.size = sizeof opts, .done = note_end, .user = user};
    struct told *t = user;
    int (*has_gil)(void);

    host_symbol(ctx, "PyGILState_Check", &has_gil);
    t->gil = has_gil();
    t->thread = pthread_self();
    t->rc = extipy_job_result(job, NULL, NULL, NULL);
    t->wait = extipy_job_wait(job, -1, NULL);
    t->closing = extipy_close(ctx, NULL, NULL, NULL, NULL);
    t->detaching = extipy_detach(ctx, NULL);
    t->inside = extipy_exec(ctx, "inside = True", NULL, NULL);
    if (t->times++ < t->again)
        extipy_job_release(host_submit(ctx, "__main__:note", 1, &opts));
}

static void assert_limits(const struct told *t)
{
    assert_false(pthread_equal(t->thread, pthread_self()));
    assert_int_equal(t->gil, 0);
    assert_int_equal(t->inside, 0);
    /* Each would wait for itself. */
    assert_int_equal(t->wait, EXTIPY_E_PLACE);
    assert_int_equal(t->closing, EXTIPY_E_PLACE);
    assert_int_equal(t->detaching, EXTIPY_E_PLACE);
}

static void a_callback_hears_of_the_end_first(void **state)
{
    struct told t = {0};
    struct extipy_job_opts opts = {.size = sizeof opts, .done = note_end, .user = &t};
    struct extipy_job *job = host_submit(ctx, "__main__:note", 1, &opts);

    (void)state;
    assert_ptr_equal(extipy_job_user(job), &t);
    assert_int_equal(host_end(job, NULL), 0);
    assert_int_equal(t.times, 1);
    assert_int_equal(t.rc, 0);
    assert_limits(&t);
}

/* It is called while another job runs. */
static void a_callback_of_a_job_that_has_not_run(void **state)
{
    struct told t = {0};
    struct extipy_job_opts opts = {.size = sizeof opts, .done = note_end, .user = &t};
    struct extipy_job *running = host_submit(ctx, "__main__:block", 1, NULL);
    struct extipy_job *job = host_submit(ctx, "__main__:note", 1, &opts);

    (void)state;
    host_await_blocked();
    assert_int_equal(extipy_job_cancel(job, NULL), 0);
    assert_int_equal(host_end(job, NULL), EXTIPY_E_CANCELLED);
    assert_int_equal(t.times, 1);
    assert_int_equal(t.rc, EXTIPY_E_CANCELLED);
    assert_limits(&t);
    host_unblock();
    assert_int_equal(host_end(running, NULL), 0);
    assert_int_equal(host_long(ctx, "inside"), 1);
}

static void callbacks_submit_more(void **state)
{
    struct told t = {.again = 50};
    struct extipy_job_opts opts = {.size = sizeof opts, .done = note_end, .user = &t};

    (void)state;
    assert_int_equal(host_end(host_submit(ctx, "__main__:note", 1, &opts), NULL), 0);
    while (t.times <= 50)
        assert_int_equal(host_end(host_submit(ctx, "__main__:note", 2, NULL), NULL), 0);
    assert_int_equal(host_long(ctx, "done.count(1)"), 51);
}

static void count_end(struct extipy_job *job, void *user)
{
    extipy_job_release(extipy_job_keep(job));
    ++*(atomic_int *)user;
}

/* Without a reference; the last of the jobs tells that all have ended. */
static void released_jobs_run_all_the_same(void **state)
{
    atomic_int ended = 0;
    struct extipy_job_opts opts = {.size = sizeof opts, .done = count_end, .user = &ended};
    struct extipy_call call = {.size = sizeof call, .function = "builtins:object"};

    (void)state;
    for (int i = 0; i < 100; i++)
        extipy_job_release(host_submit(ctx, "__main__:note", i, &opts));
    for (int i = 0; i < 100; i++)
        assert_int_equal(extipy_submit(NULL, ctx, &call, &opts, NULL), 0);
    assert_int_equal(host_end(host_submit(ctx, "__main__:note", 100, NULL), NULL), 0);
    assert_int_equal(ended, 200);
    assert_int_equal(host_long(ctx, "len(done)"), 101);
}

/* ---- waiting ---- */

static void waiting_ends_in_time_or_with_the_job(void **state)
{
    struct extipy_job *job = host_submit(ctx, "__main__:block", 3, NULL);
    struct exti_error err = {0};
    long n = -1;

    (void)state;
    host_await_blocked();
    assert_int_equal(extipy_job_wait(job, 0, &err), EXTIPY_E_TIMEOUT);
    assert_int_equal(extipy_job_wait(job, 1000000, &err), EXTIPY_E_TIMEOUT);
    host_unblock();
    assert_ok(extipy_job_wait(job, INT64_MAX, &err), &err);
    assert_ok(extipy_job_wait(job, 0, &err), &err);
    assert_int_equal(host_end(job, &n), 0);
    assert_int_equal(n, 3);
}

static void who_waits_inside_lets_go_of_the_gil(void **state)
{
    struct extipy_job *job;
    struct exti_error err = {0};

    (void)state;
    assert_ok(extipy_enter(ctx, &err), &err);
    job = host_submit(ctx, "__main__:note", 1, NULL);
    assert_ok(extipy_job_wait(job, 300 * SECONDS, &err), &err);
    assert_int_equal(host_run_inside(ctx, "assert done == [1]"), 0);
    assert_ok(extipy_leave(ctx, &err), &err);
    assert_int_equal(host_end(job, NULL), 0);
}

/* Called by Python, in a job. */
static int submit_and_wait(void)
{
    struct extipy_job *job = host_submit(ctx, "__main__:note", 1, NULL);
    int rc = extipy_job_wait(job, -1, NULL);

    extipy_job_release(job);
    return rc;
}

static void a_job_cannot_wait_for_a_later_one(void **state)
{
    char source[128];
    long rc = 0;

    (void)state;
    snprintf(source, sizeof source,
             "f = ctypes.CFUNCTYPE(ctypes.c_int)(%lu)\n"
             "def wait(n): return f()\n",
             host_address(submit_and_wait));
    host_run(ctx, source);
    assert_int_equal(host_end(host_submit(ctx, "__main__:wait", 0, NULL), &rc), 0);
    assert_int_equal(rc, EXTIPY_E_PLACE);
}

/* ---- cancelling ---- */

static void what_has_not_begun_is_cancelled(void **state)
{
    atomic_int ended = 0;
    struct extipy_job_opts opts = {.size = sizeof opts, .done = count_end, .user = &ended};
    struct extipy_job *first = host_submit(ctx, "__main__:block", 1, NULL), *second, *third;
    struct exti_error err = {0};

    (void)state;
    second = host_submit(ctx, "__main__:note", 2, &opts);
    third = host_submit(ctx, "__main__:note", 3, &opts);
    host_await_blocked();
    assert_int_equal(extipy_job_cancel(first, &err), EXTIPY_E_STATE);
    assert_ok(extipy_job_cancel(second, &err), &err);
    assert_int_equal(extipy_job_cancel(second, &err), EXTIPY_E_STATE);
    /* The first still runs. */
    assert_ok(extipy_job_wait(second, -1, &err), &err);
    assert_int_equal(ended, 1);
    assert_int_equal(extipy_job_result(second, NULL, NULL, &err), EXTIPY_E_CANCELLED);
    assert_says(&err, "cancelled before it began");
    host_unblock();
    assert_int_equal(host_end(first, NULL), 0);
    assert_int_equal(host_end(second, NULL), EXTIPY_E_CANCELLED);
    assert_int_equal(host_end(third, NULL), 0);
    assert_int_equal(host_long(ctx, "done == [3]"), 1);
}

/* ---- many threads ---- */

#define THREADS 8
#define EACH 200

static void *submit_many(void *arg)
{
    struct extipy_job *jobs[EACH];
    long n, base = (long)(intptr_t)arg * EACH;

    for (int i = 0; i < EACH; i++)
        jobs[i] = host_submit(ctx, "__main__:note", base + i, NULL);
    for (int i = 0; i < EACH; i++) {
        host_must(host_end(jobs[i], &n));
        host_must(n == 2 * (base + i) ? 0 : EXTI_E_ARG);
    }
    return NULL;
}

static void on_threads(void *(*run)(void *))
{
    pthread_t threads[THREADS];

    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void eight_threads_submit_at_once(void **state)
{
    (void)state;
    on_threads(submit_many);
    assert_int_equal(host_long(ctx, "sorted(done) == list(range(1600))"), 1);
}

static atomic_long cancelled;

/* Each job is cancelled by the thread that submitted it, while the others fill the queue. */
static void *submit_and_cancel(void *arg)
{
    struct extipy_job *jobs[EACH];
    int went, rc;

    (void)arg;
    for (int i = 0; i < EACH; i++)
        jobs[i] = host_submit(ctx, "__main__:note", i, NULL);
    for (int i = EACH - 1; i >= 0; i--) {
        went = extipy_job_cancel(jobs[i], NULL);
        rc = host_end(jobs[i], NULL);
        cancelled += rc == EXTIPY_E_CANCELLED;
        host_must(went == (rc == 0 ? EXTIPY_E_STATE : 0) ? 0 : EXTI_E_ARG);
    }
    return NULL;
}

static void a_job_is_run_or_cancelled_never_both(void **state)
{
    (void)state;
    cancelled = 0;
    on_threads(submit_and_cancel);
    assert_int_equal(host_long(ctx, "len(done)"), THREADS * EACH - cancelled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_context(jobs_run_in_their_order),
        with_context(jobs_share_a_thread_that_keeps_its_objects),
        with_context(an_exception_is_given_once),
        with_context(a_result_is_given_once),
        with_context(handles_come_and_are_called),
        with_context(a_set_of_values_serves_many_jobs),
        with_context(wrong_jobs_are_refused),
        with_context(a_callback_hears_of_the_end_first),
        with_context(a_callback_of_a_job_that_has_not_run),
        with_context(callbacks_submit_more),
        with_context(released_jobs_run_all_the_same),
        with_context(waiting_ends_in_time_or_with_the_job),
        with_context(who_waits_inside_lets_go_of_the_gil),
        with_context(a_job_cannot_wait_for_a_later_one),
        with_context(what_has_not_begun_is_cancelled),
        with_context(eight_threads_submit_at_once),
        with_context(a_job_is_run_or_cancelled_never_both),
    };

    return cmocka_run_group_tests_name("python/jobs", tests, NULL, NULL);
}
