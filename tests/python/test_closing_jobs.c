/* A context is closed while it has jobs. */
#include "tests/python/support/host.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

static struct extipy_ctx *ctx;
static struct extipy_queue *queue;
static atomic_int told;

static void count_told(struct extipy_job *job, void *user)
{
    (void)job;
    (void)user;
    told++;
}

static struct extipy_job_opts told_and_queued = {.size = sizeof told_and_queued,
                                                 .done = count_told};

static int open_context(void **state)
{
    (void)state;
    assert_int_equal(extipy_queue_new(&queue, NULL), 0);
    told_and_queued.queue = queue;
    told = 0;
    ctx = host_open();
    host_define_block(ctx);
    host_run(ctx, "def same(n): return n\n"
                  "def spin(n):\n"
                  "    block(n)\n"
                  "    while True: pass\n");
    return 0;
}

static int free_queue(void **state)
{
    (void)state;
    extipy_queue_free(queue);
    return 0;
}

#define with_context(f) cmocka_unit_test_setup_teardown(f, open_context, free_queue)

static void *close_it(void *arg)
{
    struct extipy_closed closed = {.size = sizeof closed};

    (void)arg;
    host_must(extipy_close(ctx, NULL, NULL, &closed, NULL));
    host_must(closed.attached || closed.mapped ? EXTI_E_ARG : 0);
    return NULL;
}

static pthread_t start(void *(*run)(void *), void *arg)
{
    pthread_t t;

    assert_int_equal(pthread_create(&t, NULL, run, arg), 0);
    return t;
}

/* By another thread than the test's, which is detached first. */
static pthread_t start_closing(void)
{
    assert_int_equal(extipy_detach(ctx, NULL), 0);
    return start(close_it, NULL);
}

static void *end_closed(void *arg)
{
    host_must(host_end(arg, NULL) == EXTIPY_E_CLOSED ? 0 : EXTI_E_ARG);
    return NULL;
}

#define COUNT 50

static void queued_jobs_end_at_once_and_the_running_one_by_itself(void **state)
{
    struct extipy_job *running = host_submit(ctx, "__main__:block", 7, &told_and_queued);
    struct extipy_job *queued[COUNT], *taken;
    pthread_t closer, waiting[COUNT];
    struct exti_error err = {0};
    long n = -1;

    (void)state;
    host_await_blocked();
    for (int i = 0; i < COUNT; i++) {
        queued[i] = host_submit(ctx, "__main__:same", i, &told_and_queued);
        waiting[i] = start(end_closed, extipy_job_keep(queued[i]));
    }
    closer = start_closing();
    for (int i = 0; i < COUNT; i++)
        pthread_join(waiting[i], NULL);
    assert_int_equal(extipy_job_wait(running, 0, &err), EXTIPY_E_TIMEOUT);
    assert_int_equal(extipy_job_cancel(queued[0], &err), EXTIPY_E_STATE);
    host_unblock();
    pthread_join(closer, NULL);
    /* What was a job's stays, though its context is gone. */
    assert_int_equal(told, COUNT + 1);
    assert_ok(extipy_job_wait(running, 0, &err), &err);
    assert_int_equal(extipy_job_interrupt(running, &err), EXTIPY_E_STATE);
    assert_int_equal(host_end(running, &n), 0);
    assert_int_equal(n, 7);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(extipy_job_result(queued[i], NULL, NULL, &err), EXTIPY_E_CLOSED);
        assert_says(&err, "the context is closed");
        extipy_job_release(queued[i]);
        taken = extipy_queue_next(queue);
        assert_ptr_equal(taken, queued[i]);
        extipy_job_release(taken);
    }
    taken = extipy_queue_next(queue);
    assert_ptr_equal(taken, running);
    extipy_job_release(taken);
    assert_null(extipy_queue_next(queue));
}

static void await_closing(void)
{
    struct extipy_call call = {.size = sizeof call, .function = "builtins:int"};
    int rc;

    while ((rc = extipy_submit(NULL, ctx, &call, NULL, NULL)) == 0)
        sched_yield();
    assert_int_equal(rc, EXTIPY_E_CLOSED);
}

static void an_endless_job_is_interrupted_while_closing_waits(void **state)
{
    struct extipy_job *job = host_submit(ctx, "__main__:spin", 7, &told_and_queued);
    struct exti_error err = {0};
    pthread_t closer;

    (void)state;
    host_await_blocked();
    closer = start_closing();
    await_closing();
    host_unblock();
    assert_ok(extipy_job_interrupt(job, &err), &err);
    pthread_join(closer, NULL);
    assert_int_equal(host_end(job, NULL), EXTIPY_E_RAISED);
}

static void a_deadline_ends_the_job_that_closing_waits_for(void **state)
{
    struct extipy_job_opts opts = {.size = sizeof opts, .timeout = 5000000};
    struct extipy_job *job;
    pthread_t closer;
    int rc;

    (void)state;
    host_run(ctx, "def spin(n):\n"
                  "    while True: pass\n");
    job = host_submit(ctx, "__main__:spin", 7, &opts);
    closer = start_closing();
    pthread_join(closer, NULL);
    rc = host_end(job, NULL);
    assert_true(rc == EXTIPY_E_RAISED || rc == EXTIPY_E_TIMEOUT || rc == EXTIPY_E_CLOSED);
}

static void submit_again(struct extipy_job *job, void *user)
{
    struct extipy_call call = {.size = sizeof call, .function = "builtins:int"};
    struct extipy_job_opts opts = {.size = sizeof opts, .done = submit_again, .user = user};
    int rc = extipy_submit(NULL, ctx, &call, &opts, NULL);

    (void)job;
    told++;
    if (rc < 0)
        *(atomic_int *)user = rc;
}

/* Each job is followed by another, until closing ends that. */
static void callbacks_submit_until_it_is_closed(void **state)
{
    atomic_int rc = 0;
    struct extipy_job_opts opts = {.size = sizeof opts, .done = submit_again, .user = &rc};

    (void)state;
    extipy_job_release(host_submit(ctx, "__main__:same", 1, &opts));
    while (told < 10)
        sched_yield();
    host_close(ctx);
    assert_int_equal(rc, EXTIPY_E_CLOSED);
}

static void *submit_until_closed(void *arg)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:same"};
    struct extipy_values *v = NULL;
    struct extipy_job *job;
    int rc, ended;

    host_must(extipy_values_new(&v, NULL));
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, (size_t[]){extipy_int(v, 5)}, 1);
    while ((rc = extipy_submit(&job, ctx, &call, &told_and_queued, NULL)) == 0) {
        ++*(atomic_int *)arg;
        extipy_job_cancel(job, NULL);
        ended = host_end(job, NULL);
        host_must(ended == EXTIPY_E_CLOSED || ended == EXTIPY_E_CANCELLED ? 0 : ended);
    }
    host_must(rc == EXTIPY_E_CLOSED ? 0 : rc);
    extipy_values_free(v);
    return NULL;
}

static void closing_while_eight_threads_submit(void **state)
{
    pthread_t threads[8], closer;
    struct extipy_job *job;
    atomic_int submitted = 0;
    int taken = 0;

    (void)state;
    for (int i = 0; i < 8; i++)
        threads[i] = start(submit_until_closed, &submitted);
    while (submitted < 100)
        sched_yield();
    closer = start_closing();
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    pthread_join(closer, NULL);
    while ((job = extipy_queue_next(queue))) {
        extipy_job_release(job);
        taken++;
    }
    assert_int_equal(told, submitted);
    assert_int_equal(taken, submitted);
}

static void *cancel_all(void *arg)
{
    struct extipy_job **jobs = arg;

    for (int i = 0; i < COUNT; i++)
        extipy_job_cancel(jobs[i], NULL);
    return NULL;
}

static void closing_while_jobs_are_cancelled(void **state)
{
    struct extipy_job *running = host_submit(ctx, "__main__:block", 7, NULL), *queued[COUNT];
    pthread_t canceller, closer;
    int rc;

    (void)state;
    host_await_blocked();
    for (int i = 0; i < COUNT; i++)
        queued[i] = host_submit(ctx, "__main__:same", i, &told_and_queued);
    closer = start_closing();
    canceller = start(cancel_all, queued);
    host_unblock();
    pthread_join(canceller, NULL);
    pthread_join(closer, NULL);
    assert_int_equal(told, COUNT);
    assert_int_equal(host_end(running, NULL), 0);
    for (int i = 0; i < COUNT; i++) {
        rc = host_end(queued[i], NULL);
        assert_true(rc == EXTIPY_E_CLOSED || rc == EXTIPY_E_CANCELLED || rc == 0);
    }
}

/* A handle and an exception that nobody has asked for hold nothing. */
static void outcomes_outlive_the_context(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "builtins:object"};
    struct extipy_job *object, *raised, *untaken;
    struct extipy_values *result = NULL;
    struct extipy_exception *e = NULL;

    (void)state;
    assert_int_equal(extipy_submit(&object, ctx, &call, NULL, NULL), 0);
    assert_int_equal(extipy_submit(&untaken, ctx, &call, NULL, NULL), 0);
    call.function = "__main__:nothing";
    assert_int_equal(extipy_submit(&raised, ctx, &call, NULL, NULL), 0);
    assert_int_equal(extipy_job_wait(raised, -1, NULL), 0);
    host_close(ctx);
    assert_int_equal(extipy_job_result(object, &result, NULL, NULL), 0);
    assert_int_equal(extipy_job_result(raised, NULL, &e, NULL), EXTIPY_E_RAISED);
    assert_string_equal(e->type, "AttributeError");
    extipy_exception_free(e);
    extipy_values_free(result);
    extipy_job_release(object);
    extipy_job_release(raised);
    extipy_job_release(untaken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_context(queued_jobs_end_at_once_and_the_running_one_by_itself),
        with_context(an_endless_job_is_interrupted_while_closing_waits),
        with_context(a_deadline_ends_the_job_that_closing_waits_for),
        with_context(callbacks_submit_until_it_is_closed),
        with_context(closing_while_eight_threads_submit),
        with_context(closing_while_jobs_are_cancelled),
        with_context(outcomes_outlive_the_context),
    };

    return cmocka_run_group_tests_name("python/closing_jobs", tests, NULL, NULL);
}
