/* Jobs that have ended wait in queues for programs with an event loop. */
#include "tests/support/interrupt_calls.h"

#include "tests/python/support/host.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static struct extipy_ctx *ctx[2];
static struct extipy_queue *queue;

static int open_contexts(void **state)
{
    struct exti_error err = {0};

    (void)state;
    assert_ok(extipy_queue_new(&queue, &err), &err);
    for (int i = 0; i < 2; i++) {
        ctx[i] = host_open();
        host_run(ctx[i], "def same(n): return n");
    }
    return 0;
}

static int close_contexts(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        host_close(ctx[i]);
    extipy_queue_free(queue);
    return 0;
}

#define with_contexts(f) cmocka_unit_test_setup_teardown(f, open_contexts, close_contexts)

static struct extipy_job *submit(int to, long n)
{
    struct extipy_job_opts opts = {.size = sizeof opts, .queue = queue, .user = (void *)n};

    return host_submit(ctx[to], "__main__:same", n, &opts);
}

static int is_readable(int timeout)
{
    struct pollfd p = {.fd = extipy_queue_fd(queue), .events = POLLIN};
    int rc;

    do
        rc = poll(&p, 1, timeout);
    while (rc < 0 && errno == EINTR);
    return rc == 1 && p.revents == POLLIN;
}

static void readable_as_long_as_there_are_jobs(void **state)
{
    struct extipy_job *jobs[3];

    (void)state;
    for (int round = 0; round < 20; round++) {
        assert_false(is_readable(0));
        assert_null(extipy_queue_next(queue));
        for (int i = 0; i < 3; i++)
            jobs[i] = submit(0, i);
        for (int i = 0; i < 3; i++)
            assert_int_equal(extipy_job_wait(jobs[i], -1, NULL), 0);
        for (int i = 0; i < 3; i++) {
            assert_true(is_readable(0));
            assert_ptr_equal(extipy_queue_next(queue), jobs[i]);
            extipy_job_release(jobs[i]);
            assert_int_equal(host_end(jobs[i], NULL), 0);
        }
    }
    assert_false(is_readable(0));
}

static void poll_wakes_for_each_of_two_contexts(void **state)
{
    int seen[100] = {0};
    struct extipy_job *job;
    long n = -1;

    (void)state;
    for (int i = 0; i < 100; i++)
        extipy_job_release(submit(i % 2, i));
    for (int left = 100; left > 0;) {
        assert_true(is_readable(300000));
        for (; (job = extipy_queue_next(queue)); left--) {
            seen[(long)extipy_job_user(job)]++;
            assert_int_equal(extipy_job_result(job, NULL, NULL, NULL), 0);
            host_end(job, &n);
        }
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(seen[i], 1);
}

#define THREADS 8
#define EACH 200

static void *submit_many(void *arg)
{
    long base = (long)(intptr_t)arg * EACH;

    for (int i = 0; i < EACH; i++)
        extipy_job_release(submit(i % 2, base + i));
    return NULL;
}

static void eight_threads_submit_and_one_takes(void **state)
{
    static int seen[THREADS * EACH];
    pthread_t threads[THREADS];
    struct extipy_job *job;

    (void)state;
    memset(seen, 0, sizeof seen);
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, submit_many, (void *)i), 0);
    for (int left = THREADS * EACH; left > 0; left--) {
        while (!(job = extipy_queue_next(queue)))
            assert_true(is_readable(300000));
        seen[(long)extipy_job_user(job)]++;
        extipy_job_release(job);
    }
    assert_null(extipy_queue_next(queue));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS * EACH; i++)
        assert_int_equal(seen[i], 1);
}

/* With jobs in it, and with some on their way. */
static void a_queue_is_freed_before_its_jobs(void **state)
{
    struct extipy_job *ended, *running, *waiting;

    (void)state;
    host_define_block(ctx[0]);
    ended = submit(0, 1);
    assert_int_equal(extipy_job_wait(ended, -1, NULL), 0);
    running = host_submit(
        ctx[0], "__main__:block", 2,
        &(struct extipy_job_opts){.size = sizeof(struct extipy_job_opts), .queue = queue});
    waiting = submit(0, 3);
    host_await_blocked();
    extipy_queue_free(queue);
    queue = NULL;
    host_unblock();
    assert_int_equal(host_end(ended, NULL), 0);
    assert_int_equal(host_end(running, NULL), 0);
    assert_int_equal(host_end(waiting, NULL), 0);
}

static void cancelled_jobs_get_in_too(void **state)
{
    struct extipy_job *running, *waiting;

    (void)state;
    host_define_block(ctx[0]);
    running = host_submit(ctx[0], "__main__:block", 2, NULL);
    waiting = submit(0, 3);
    host_await_blocked();
    assert_int_equal(extipy_job_cancel(waiting, NULL), 0);
    assert_true(is_readable(300000));
    assert_ptr_equal(extipy_queue_next(queue), waiting);
    extipy_job_release(waiting);
    assert_int_equal(host_end(waiting, NULL), EXTIPY_E_CANCELLED);
    host_unblock();
    assert_int_equal(host_end(running, NULL), 0);
}

static void its_descriptor_never_waits_nor_is_inherited(void **state)
{
    char bytes[8];
    int fd;

    (void)state;
    fd = extipy_queue_fd(queue);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(read(fd, bytes, sizeof bytes), -1);
    assert_int_equal(errno, EAGAIN);
}

static void signals_do_not_disturb_it(void **state)
{
    struct extipy_job *job;

    (void)state;
    interrupts.write = 1;
    job = submit(0, 1);
    assert_int_equal(extipy_job_wait(job, -1, NULL), 0);
    assert_int_equal(interrupts.write, 0);
    assert_true(is_readable(0));
    interrupts.read = 1;
    assert_ptr_equal(extipy_queue_next(queue), job);
    assert_int_equal(interrupts.read, 0);
    assert_false(is_readable(0));
    extipy_job_release(job);
    assert_int_equal(host_end(job, NULL), 0);
}

static void without_descriptors_there_is_no_queue(void **state)
{
    struct extipy_queue *q = NULL, *same;
    struct exti_error err = {0};
    struct rlimit old, none;
    int rc;

    (void)state;
    assert_int_equal(extipy_queue_new(NULL, &err), EXTI_E_ARG);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rc = extipy_queue_new(&q, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(rc, EXTI_E_IO);
    assert_int_equal(err.os_error, EMFILE);
    assert_null(q);
    assert_int_equal(extipy_queue_new(&same, &err), 0);
    extipy_queue_free(same);
    extipy_queue_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_contexts(readable_as_long_as_there_are_jobs),
        with_contexts(poll_wakes_for_each_of_two_contexts),
        with_contexts(eight_threads_submit_and_one_takes),
        with_contexts(a_queue_is_freed_before_its_jobs),
        with_contexts(cancelled_jobs_get_in_too),
        with_contexts(its_descriptor_never_waits_nor_is_inherited),
        with_contexts(signals_do_not_disturb_it),
        cmocka_unit_test(without_descriptors_there_is_no_queue),
    };

    return cmocka_run_group_tests_name("python/queues", tests, NULL, NULL);
}
