/* Threads take turns at the contexts of a pool, which replaces those that are worn. */
#include "tests/python/support/host.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_int opened, gone;

/* Contexts print when they are new, and at their end. */
static void count_lines(void *user, enum extipy_stream stream, const char *text, size_t length)
{
    (void)user;
    (void)stream;
    (void)length;
    opened += strncmp(text, "new", 3) == 0;
    gone += strncmp(text, "gone", 4) == 0;
}

static const struct extipy_opts each = {.size = sizeof each, .output = count_lines};
static const char say_new[] = "import atexit\n"
                              "print('new')\n"
                              "atexit.register(print, 'gone')\n"
                              "def same(n): return n\n";
static const char *const modules[] = {"json", "concurrent.futures"};

static struct extipy_pool_opts of(size_t count)
{
    opened = gone = 0;
    return (struct extipy_pool_opts){.size = sizeof(struct extipy_pool_opts),
                                     .count = count,
                                     .each = &each,
                                     .imports = modules,
                                     .import_count = 2,
                                     .source = say_new};
}

static struct extipy_pool *open_pool(const struct extipy_pool_opts *opts)
{
    struct extipy_pool *pool = NULL;
    struct exti_error err = {0};

    assert_ok(extipy_pool_open(&pool, host_python(), opts, &err), &err);
    return pool;
}

static struct extipy_ctx *acquire(struct extipy_pool *pool)
{
    struct extipy_ctx *c = NULL;

    host_must(extipy_pool_acquire(&c, pool, -1, NULL));
    return c;
}

static void give_back(struct extipy_pool *pool, struct extipy_ctx *c)
{
    host_must(extipy_pool_give_back(pool, c, 0, NULL));
}

static void close_pool(struct extipy_pool *pool)
{
    struct extipy_closed closed = {.size = sizeof closed};
    struct exti_error err = {0};

    assert_ok(extipy_pool_close(pool, NULL, NULL, &closed, &err), &err);
    assert_int_equal(closed.attached, 0);
    assert_int_equal(closed.mapped, 0);
    assert_int_equal(closed.buffers, 0);
    assert_int_equal(gone, opened);
    extipy_pool_free(pool);
}

static void exec(struct extipy_ctx *c, const char *source)
{
    host_must(extipy_exec(c, source, NULL, NULL));
}

static pthread_t start(void *(*run)(void *), void *arg)
{
    pthread_t t;

    assert_int_equal(pthread_create(&t, NULL, run, arg), 0);
    return t;
}

/* ---- turns ---- */

static void contexts_are_warm_and_used_again(void **state)
{
    struct extipy_pool_opts opts = of(2);
    struct extipy_pool *pool = open_pool(&opts);
    struct extipy_ctx *a, *b, *none = NULL;
    struct test *t = *state;

    assert_int_equal(opened, 2);
    a = acquire(pool);
    b = acquire(pool);
    assert_ptr_not_equal(a, b);
    exec(a, "import sys, extisolate as e\n"
            "assert 'concurrent.futures' in sys.modules and (e.index, e.count) == (0, 2)\n"
            "mine = same(1)");
    exec(b, "import extisolate as e; assert (e.index, e.count) == (1, 2)");
    assert_int_equal(extipy_pool_acquire(&none, pool, 0, &t->err), EXTIPY_E_TIMEOUT);
    assert_int_equal(extipy_pool_acquire(&none, pool, 1000000, &t->err), EXTIPY_E_TIMEOUT);
    assert_null(none);
    give_back(pool, a);
    assert_ptr_equal(acquire(pool), a);
    exec(a, "assert mine == 1");
    give_back(pool, a);
    give_back(pool, b);
    close_pool(pool);
    assert_int_equal(opened, 2);
}

static void a_lazy_pool_opens_what_is_wanted(void **state)
{
    struct extipy_pool_opts opts = of(3);
    struct extipy_pool *pool;
    struct extipy_ctx *a, *b = NULL;

    (void)state;
    opts.lazy = 1;
    pool = open_pool(&opts);
    assert_int_equal(opened, 0);
    a = acquire(pool);
    give_back(pool, a);
    assert_ptr_equal(acquire(pool), a);
    assert_int_equal(opened, 1);
    /* Who only asks gets one later. */
    while (extipy_pool_acquire(&b, pool, 0, NULL) < 0)
        sched_yield();
    assert_int_equal(opened, 2);
    give_back(pool, a);
    give_back(pool, b);
    close_pool(pool);
    assert_int_equal(opened, 2);
}

struct turns {
    struct extipy_pool *pool;
    atomic_int *sum;
    int rounds;
};

static void *take_turns(void *arg)
{
    struct turns *w = arg;
    struct extipy_call call = {.size = sizeof call, .function = "__main__:same"};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *v = NULL, *result;
    struct extipy_ctx *c;

    host_must(extipy_values_new(&v, NULL));
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, (size_t[]){extipy_int(v, 1)}, 1);
    for (int i = 0; i < w->rounds; i++) {
        c = acquire(w->pool);
        host_must(extipy_call(c, &call, &result, NULL, NULL));
        host_must(extipy_value(result, 1, &value));
        *w->sum += (int)value.integer;
        extipy_values_free(result);
        give_back(w->pool, c);
    }
    extipy_values_free(v);
    return NULL;
}

static void threads_take_turns(void **state)
{
    struct extipy_pool_opts opts = of(2);
    atomic_int sum = 0;
    struct turns w = {.sum = &sum, .rounds = 40};
    pthread_t t[8];

    (void)state;
    opts.lazy = 1;
    opts.most_calls = 20;
    w.pool = open_pool(&opts);
    for (int i = 0; i < 8; i++)
        t[i] = start(take_turns, &w);
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
    close_pool(w.pool);
    assert_int_equal(sum, 8 * 40);
    assert_in_range(opened, 8 * 40 / 20, 8 * 40 / 20 + 2);
}

static struct extipy_pool *telling;
static atomic_int back;

static void give_back_when_done(struct extipy_job *job, void *user)
{
    (void)job;
    back = 1 + (extipy_pool_give_back(telling, *(struct extipy_ctx **)user, 0, NULL) != 0);
}

/* On the thread that runs jobs, and on the one that tells of those that do not run. */
static void the_callback_of_a_job_may_give_its_context_back(void **state)
{
    struct extipy_pool_opts opts = of(1);
    struct extipy_ctx *c = NULL;
    struct extipy_job_opts how = {.size = sizeof how, .done = give_back_when_done, .user = &c};
    struct extipy_job *running, *cancelled;

    (void)state;
    opts.most_calls = 1;
    telling = open_pool(&opts);
    for (int i = 0; i < 3; i++) {
        back = 0;
        c = acquire(telling);
        assert_int_equal(host_end(host_submit(c, "__main__:same", i, &how), NULL), 0);
        assert_int_equal(back, 1);
    }
    c = acquire(telling);
    back = 0;
    host_define_block(c);
    assert_int_equal(extipy_detach(c, NULL), 0);
    running = host_submit(c, "__main__:block", 1, NULL);
    host_await_blocked();
    cancelled = host_submit(c, "__main__:same", 1, &how);
    assert_int_equal(extipy_job_cancel(cancelled, NULL), 0);
    assert_int_equal(host_end(cancelled, NULL), EXTIPY_E_CANCELLED);
    assert_int_equal(back, 1);
    host_unblock();
    assert_int_equal(host_end(running, NULL), 0);
    close_pool(telling);
    assert_in_range(opened, 4, 5);
}

/* ---- replacement ---- */

static void a_context_that_has_had_its_calls_is_replaced(void **state)
{
    struct extipy_pool_opts opts = of(1);
    struct extipy_pool *pool;
    struct extipy_ctx *c;

    (void)state;
    opts.most_calls = 3;
    pool = open_pool(&opts);
    c = acquire(pool);
    exec(c, "mine = 1");
    exec(c, "mine += 1");
    give_back(pool, c);
    c = acquire(pool);
    exec(c, "assert mine == 2");
    give_back(pool, c);
    c = acquire(pool);
    exec(c, "assert 'mine' not in globals()");
    assert_int_equal(opened, 2);
    give_back(pool, c);
    close_pool(pool);
}

static void a_context_that_has_grown_is_replaced(void **state)
{
    struct extipy_pool_opts opts = of(1);
    struct extipy_pool *pool;
    struct extipy_ctx *c;

    (void)state;
    opts.most_growth = 8 << 20;
    pool = open_pool(&opts);
    c = acquire(pool);
    exec(c, "gone = bytearray(16 << 20); del gone; mine = bytearray(2 << 20)");
    give_back(pool, c);
    c = acquire(pool);
    exec(c, "mine = [bytes(100) for _ in range(100000)]");
    give_back(pool, c);
    c = acquire(pool);
    exec(c, "assert 'mine' not in globals()");
    assert_int_equal(opened, 2);
    give_back(pool, c);
    close_pool(pool);
}

static void a_broken_or_closed_context_is_replaced(void **state)
{
    struct extipy_pool_opts opts = of(1);
    struct extipy_pool *pool = open_pool(&opts);
    struct extipy_ctx *c;

    (void)state;
    c = acquire(pool);
    exec(c, "mine = 1");
    assert_int_equal(extipy_pool_give_back(pool, c, 1, NULL), 0);
    c = acquire(pool);
    exec(c, "assert 'mine' not in globals(); mine = 2");
    /* By whoever has it. */
    assert_int_equal(extipy_close(c, NULL, NULL, NULL, NULL), 0);
    give_back(pool, c);
    c = acquire(pool);
    exec(c, "assert 'mine' not in globals(); mine = 3");
    give_back(pool, c);
    /* While nobody has it. */
    assert_int_equal(extipy_close(c, NULL, NULL, NULL, NULL), 0);
    c = acquire(pool);
    exec(c, "assert 'mine' not in globals()");
    give_back(pool, c);
    close_pool(pool);
    assert_int_equal(opened, 4);
}

static void *run_block(void *arg)
{
    exec(arg, "block(1)");
    return NULL;
}

/* A thread stays inside, so that the old context cannot be closed. */
static void giving_back_waits_for_no_end(void **state)
{
    struct extipy_pool_opts opts = of(1);
    struct extipy_pool *pool = open_pool(&opts);
    struct extipy_ctx *c = acquire(pool), *other;
    pthread_t inside;

    (void)state;
    host_define_block(c);
    inside = start(run_block, c);
    host_await_blocked();
    assert_int_equal(extipy_pool_give_back(pool, c, 1, NULL), 0);
    other = acquire(pool);
    exec(other, "assert 'block' not in globals()");
    assert_int_equal(gone, 0);
    give_back(pool, other);
    host_unblock();
    pthread_join(inside, NULL);
    /* That thread may not have detached in time. */
    host_must(extipy_pool_close(pool, NULL, NULL, NULL, NULL));
    extipy_pool_free(pool);
    assert_int_equal(opened, 2);
    assert_int_equal(gone, 2);
}

/* ---- failures ---- */

static void *acquire_a_failure(void *arg)
{
    struct extipy_ctx *c = NULL;
    struct exti_error err = {0};

    host_must(extipy_pool_acquire(&c, arg, -1, &err) == EXTIPY_E_RAISED ? 0 : EXTI_E_ARG);
    host_must(strstr(err.message, "not now") ? 0 : EXTI_E_ARG);
    return NULL;
}

static void a_warm_up_that_fails_is_told(void **state)
{
    const char *const missing[] = {"json", "no_such_module"};
    struct extipy_pool_opts opts = of(2);
    struct extipy_pool *pool = NULL;
    struct extipy_ctx *c;
    struct test *t = *state;
    pthread_t threads[4];

    opts.imports = missing;
    assert_int_equal(extipy_pool_open(&pool, host_python(), &opts, &t->err), EXTIPY_E_RAISED);
    assert_says(&t->err, "no_such_module");
    assert_null(pool);
    opts = of(2);
    opts.source = "print('new'); import os\n"
                  "import atexit; atexit.register(print, 'gone')\n"
                  "if 'POOL_FAILS' in os.environ: raise ValueError('not now')\n";
    opts.lazy = 1;
    setenv("POOL_FAILS", "1", 1);
    pool = open_pool(&opts);
    for (int i = 0; i < 4; i++)
        threads[i] = start(acquire_a_failure, pool);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    unsetenv("POOL_FAILS");
    c = acquire(pool);
    give_back(pool, c);
    close_pool(pool);
}

/* Its replacement fails, and then nobody tries until somebody waits. */
static void a_replacement_that_fails_is_tried_again(void **state)
{
    struct extipy_pool_opts opts = of(1);
    struct extipy_pool *pool;
    struct extipy_ctx *c;
    struct test *t = *state;
    int failed;

    opts.source = "import os\n"
                  "if 'POOL_FAILS' in os.environ: print('new'); print('gone'); 1 / 0\n"
                  "import atexit; print('new'); atexit.register(print, 'gone')\n";
    pool = open_pool(&opts);
    setenv("POOL_FAILS", "1", 1);
    c = acquire(pool);
    assert_int_equal(extipy_pool_give_back(pool, c, 1, NULL), 0);
    while (opened < 2)
        sched_yield();
    usleep(5000);
    assert_int_equal(opened, 2);
    assert_int_equal(extipy_pool_acquire(&c, pool, -1, &t->err), EXTIPY_E_RAISED);
    failed = opened;
    assert_in_range(failed, 2, 3);
    unsetenv("POOL_FAILS");
    c = acquire(pool);
    assert_int_equal(opened, failed + 1);
    give_back(pool, c);
    close_pool(pool);
}

static void wrong_arguments_are_refused(void **state)
{
    const struct extipy_opts named = {.size = sizeof named, .name = "one"};
    const struct extipy_opts kept = {.size = sizeof kept, .flags = EXTI_CTX_KEEP};
    const struct extipy_opts unknown = {.size = 1};
    const struct extipy_opts lent = {.size = sizeof lent, .on_caller = 1};
    struct extipy_pool_opts opts = of(1), wrong[6];
    struct extipy_pool *pool = NULL;
    struct extipy_ctx *c, *alone = host_open();
    struct test *t = *state;

    for (int i = 0; i < 6; i++)
        wrong[i] = opts;
    wrong[0].count = 0;
    wrong[1].each = &named;
    wrong[2].each = &kept;
    wrong[2].most_growth = 1;
    wrong[3].each = &unknown;
    wrong[4].count = SIZE_MAX;
    wrong[5].each = &lent;
    for (int i = 0; i < 6; i++)
        assert_int_equal(extipy_pool_open(&pool, host_python(), &wrong[i], &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_pool_open(&pool, host_python(), NULL, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_pool_open(&pool, NULL, &opts, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_pool_open(NULL, host_python(), &opts, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_pool_acquire(&c, NULL, 0, &t->err), EXTI_E_ARG);
    pool = open_pool(&opts);
    assert_int_equal(extipy_pool_acquire(NULL, pool, 0, &t->err), EXTI_E_ARG);
    c = acquire(pool);
    assert_int_equal(extipy_pool_give_back(pool, alone, 0, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_pool_give_back(pool, NULL, 0, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_pool_give_back(NULL, c, 0, &t->err), EXTI_E_ARG);
    host_must(extipy_enter(c, NULL));
    assert_int_equal(extipy_pool_give_back(pool, c, 0, &t->err), EXTIPY_E_PLACE);
    assert_int_equal(extipy_pool_close(pool, NULL, NULL, NULL, &t->err), EXTIPY_E_PLACE);
    host_must(extipy_leave(c, NULL));
    give_back(pool, c);
    assert_int_equal(extipy_pool_give_back(pool, c, 0, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_pool_close(NULL, NULL, NULL, NULL, &t->err), 0);
    close_pool(pool);
    host_close(alone);
}

/* ---- the end ---- */

static atomic_int refused;

static void *acquire_until_closed(void *arg)
{
    struct extipy_ctx *c = NULL;
    int rc;

    while ((rc = extipy_pool_acquire(&c, arg, -1, NULL)) == 0)
        give_back(arg, c);
    host_must(rc == EXTIPY_E_CLOSED ? 0 : rc);
    refused++;
    return NULL;
}

static void *close_it(void *arg)
{
    host_must(extipy_pool_close(arg, NULL, NULL, NULL, NULL));
    return NULL;
}

static void closing_refuses_who_waits_and_waits_for_who_has(void **state)
{
    struct extipy_pool_opts opts = of(1);
    struct extipy_pool *pool = open_pool(&opts);
    struct extipy_ctx *c = acquire(pool);
    pthread_t waiting[8], closer;
    struct test *t = *state;

    refused = 0;
    for (int i = 0; i < 8; i++)
        waiting[i] = start(acquire_until_closed, pool);
    closer = start(close_it, pool);
    for (int i = 0; i < 8; i++)
        pthread_join(waiting[i], NULL);
    assert_int_equal(refused, 8);
    assert_int_equal(gone, 0);
    exec(c, "assert same(1)");
    give_back(pool, c);
    pthread_join(closer, NULL);
    assert_int_equal(gone, 1);
    assert_int_equal(extipy_pool_acquire(&c, pool, -1, &t->err), EXTIPY_E_CLOSED);
    assert_int_equal(extipy_pool_close(pool, NULL, NULL, NULL, &t->err), EXTIPY_E_CLOSED);
    assert_int_equal(extipy_pool_give_back(pool, c, 0, &t->err), EXTI_E_ARG);
    extipy_pool_free(pool);
    extipy_pool_free(NULL);
}

static void closing_while_threads_take_turns(void **state)
{
    struct extipy_pool_opts opts = of(3);
    struct extipy_pool *pool;
    pthread_t t[8];

    (void)state;
    opts.lazy = 1;
    opts.most_calls = 1;
    for (int i = 0; i < 5; i++) {
        refused = 0;
        pool = open_pool(&opts);
        for (int k = 0; k < 8; k++)
            t[k] = start(acquire_until_closed, pool);
        while (opened < i)
            sched_yield();
        close_it(pool);
        for (int k = 0; k < 8; k++)
            pthread_join(t[k], NULL);
        extipy_pool_free(pool);
        assert_int_equal(refused, 8);
        assert_int_equal(gone, opened);
    }
}

/* A pool that nobody has used, one whose contexts are used by a thread in another context, and
 * buffers, which the sum counts. */
static void closing_says_what_is_left(void **state)
{
    struct extipy_call call = {.size = sizeof call, .function = "builtins:bytearray", .stay = 1};
    struct extipy_closed closed = {.size = sizeof closed};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_pool_opts opts = of(2);
    struct extipy_pool *pool = open_pool(&opts);
    struct extipy_ctx *outer = acquire(pool), *inner;
    struct extipy_values *result;
    struct extipy_buffer *buffer;
    struct test *t = *state;

    host_must(extipy_enter(outer, NULL));
    inner = acquire(pool);
    assert_ok(extipy_call(inner, &call, &result, NULL, &t->err), &t->err);
    assert_int_equal(extipy_value(result, 1, &value), 0);
    assert_ok(extipy_buffer_of(&buffer, value.object, 0, NULL, &t->err), &t->err);
    extipy_values_free(result);
    assert_int_equal(extipy_pool_give_back(pool, inner, 1, NULL), 0);
    inner = acquire(pool);
    exec(inner, "assert same(1)");
    give_back(pool, inner);
    host_must(extipy_leave(outer, NULL));
    give_back(pool, outer);
    assert_ok(extipy_pool_close(pool, NULL, NULL, &closed, &t->err), &t->err);
    assert_int_equal(closed.buffers, 1);
    assert_int_equal(closed.attached + closed.mapped, 0);
    assert_int_equal(opened, 3);
    extipy_pool_free(pool);
    extipy_buffer_release(buffer);
    while (extipy_lingering())
        usleep(1000);
    closed.size = 1;
    pool = open_pool(&opts);
    assert_int_equal(extipy_pool_close(pool, NULL, NULL, &closed, &t->err), EXTI_E_ARG);
    close_pool(pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(contexts_are_warm_and_used_again),
        exti_test(a_lazy_pool_opens_what_is_wanted),
        exti_test(threads_take_turns),
        exti_test(the_callback_of_a_job_may_give_its_context_back),
        exti_test(a_context_that_has_had_its_calls_is_replaced),
        exti_test(a_context_that_has_grown_is_replaced),
        exti_test(a_broken_or_closed_context_is_replaced),
        exti_test(giving_back_waits_for_no_end),
        exti_test(a_warm_up_that_fails_is_told),
        exti_test(a_replacement_that_fails_is_tried_again),
        exti_test(wrong_arguments_are_refused),
        exti_test(closing_refuses_who_waits_and_waits_for_who_has),
        exti_test(closing_while_threads_take_turns),
        exti_test(closing_says_what_is_left),
    };

    return cmocka_run_group_tests_name("python/pools", tests, NULL, NULL);
}
