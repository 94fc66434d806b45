/* Each allocation in turn fails, of the library's own and of Python's: every call tells of it, loses
 * nothing, and works when it is tried again.  EXTI_STEP=3 lets every third allocation fail. */
#include "tests/python/support/host.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/python/nomem/faults.h"

/* ---- the failures one by one ---- */

/* One context for most tests. */
static struct extipy_ctx *ctx;

/* Buffers in circles of objects are released when Python finds these. */
static void collect(void)
{
    host_must(extipy_exec(ctx, "import gc; gc.collect(); print()", NULL, NULL));
}

/* Of what is released some is freed by threads of the library's, a little later. */
static long settled(void)
{
    long before;

    collect();
    do {
        before = live;
        usleep(20000);
    } while (live != before);
    return before;
}

static void assert_live(long wanted)
{
    collect();
    for (int i = 0; i < 10000 && live != wanted; i++)
        usleep(1000);
    assert_int_equal(live, wanted);
}

/* Whether a failure of the library's or of Python's is told as what it is. */
static void assert_told(int rc, const struct exti_error *err)
{
    if (rc == EXTIPY_E_RAISED)
        assert_says(err, "MemoryError");
    else if (rc == EXTI_E_IO)
        assert_true(err->os_error == EAGAIN || err->os_error == ENOMEM);
    else if (rc == EXTI_E_LOAD)
        assert_says(err, "CPython did not start");
    else if (rc != 0)
        assert_exti(rc, EXTI_E_NOMEM, err, EXTI_NO_OFFSET);
}

static long step(void)
{
    const char *text = getenv("EXTI_STEP");

    return text && atol(text) > 0 ? atol(text) : 1;
}

/* Without memory for a function CPython 3.12 and 3.13 release its code twice (MAKE_FUNCTION), as
 * _testcapi.set_nomemory shows in a plain interpreter.  References to spare make up for that. */
static const char spare[] = "import ctypes, gc, sys, types\n"
                            "def spare(code):\n"
                            "    ctypes.c_ssize_t.from_address(id(code)).value += 1000\n"
                            "    for c in code.co_consts:\n"
                            "        if isinstance(c, types.CodeType): spare(c)\n"
                            "if sys.version_info[:2] in ((3, 12), (3, 13)):\n"
                            "    for f in gc.get_objects():\n"
                            "        if isinstance(f, types.FunctionType): spare(f.__code__)\n";

/* Calls `once` with the n-th allocation failing, for each n, until none has failed. */
static void fail_each(struct test *t, int (*once)(struct test *t), struct way given)
{
    const long stride = step() * (given.stride ? given.stride : 1);
    long told = 0, hit = 0, before;
    int rc;

    assert_int_equal(once(t), 0);
    if (given.python)
        host_must(extipy_exec(ctx, spare, NULL, NULL));
    before = settled();
    way = given;
    for (first = 0;; first += stride) {
        t->err = (struct exti_error){0};
        failed = 0;
        begin_failing(AT_ONCE);
        rc = once(t);
        failing = false;
        assert_told(rc, &t->err);
        assert_live(before);
        told += rc != 0;
        hit += failed != 0;
        if (!failed || (given.most && first + stride >= given.most))
            break;
    }
    print_message("%ld allocations, of which %ld were told of\n", first, told);
    assert_true(hit > 0 && (told > 0 || given.silent));
    first = LONG_MAX;
    assert_int_equal(once(t), 0);
}

static const struct way own = {0}, pythons = {.python = true};

/* ---- calls ---- */

static const char functions[] = "import sys, threading\n"
                                "def write():\n"
                                "    for text in 'a', 'b', 'c\\nd', None, 'e\\n':\n"
                                "        sys.stdout.write(text) if text else sys.stdout.flush()\n"
                                "def same(*args, **kwargs): return args\n"
                                "def fail(*args):\n"
                                "    try:\n"
                                "        1 / 0\n"
                                "    except ZeroDivisionError as e:\n"
                                "        raise ValueError('wrong') from e\n"
                                "array = bytearray(8)\n"
                                "def get(*args): return array\n";

static struct extipy_object *array;
static char pixels[12];

static void hear(void *user, enum extipy_stream stream, const char *text, size_t length)
{
    (void)user;
    (void)stream;
    (void)text;
    (void)length;
}

/* Each kind of value, and more values than there is room for at first. */
static size_t add_all(struct extipy_values *v, struct extipy_buffer *b)
{
    size_t items[8], list, dict, set;

    items[0] = extipy_big_int(v, "\0\0\0\0\0\0\0\0\1", 9);
    items[1] = extipy_str(v, "text", 4);
    items[2] = extipy_bytes(v, "bytes", 5);
    items[3] = extipy_object(v, array);
    items[4] = extipy_buffer(v, b);
    items[5] = extipy_float(v, 0.5);
    items[6] = extipy_bool(v, 1);
    items[7] = extipy_none(v);
    list = extipy_container(v, EXTIPY_LIST, items, ARRAY_SIZE(items));
    set = extipy_container(v, EXTIPY_SET, items, 2);
    dict = extipy_container(v, EXTIPY_DICT, NULL, 0);
    extipy_add_pair(v, dict, items[1], extipy_container(v, EXTIPY_TUPLE, items, 8));
    extipy_add(v, list, set);
    extipy_add(v, list, dict);
    extipy_add(v, list, list);
    for (int i = 0; i < 40; i++)
        extipy_add(v, list, extipy_int(v, i));
    return list;
}

static int call_with_all(struct test *t, const char *function, struct extipy_buffer *b, int stay)
{
    struct extipy_call call = {.size = sizeof call, .function = function, .stay = stay};
    struct extipy_values *v = NULL, *result = NULL;
    size_t all, pair[2];
    int rc = extipy_values_new(&v, &t->err);

    if (rc < 0)
        return rc;
    all = add_all(v, b);
    pair[0] = extipy_str(v, "name", 4);
    pair[1] = all;
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, &all, 1);
    call.kwargs = extipy_container(v, EXTIPY_DICT, pair, 2);
    rc = extipy_call(ctx, &call, &result, NULL, &t->err);
    extipy_values_free(v);
    extipy_values_free(result);
    return rc;
}

static int exchange(struct test *t, int stay)
{
    const struct extipy_buffer_info info = {
        .size = sizeof info, .data = pixels, .length = sizeof pixels};
    struct extipy_buffer *b = NULL;
    int rc = extipy_buffer_new(&b, &info, NULL, NULL, &t->err);

    if (rc == 0)
        rc = call_with_all(t, "__main__:same", b, stay);
    extipy_buffer_release(b);
    return rc;
}

static int exchange_values(struct test *t)
{
    return exchange(t, 0);
}

static int exchange_handles(struct test *t)
{
    return exchange(t, 1);
}

static void values_go_there_and_back(void **state)
{
    fail_each(*state, exchange_values, own);
    fail_each(*state, exchange_handles, own);
    fail_each(*state, exchange_values, pythons);
}

static int raise_one(struct test *t)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:fail"};
    struct extipy_exception *e = NULL;
    int rc = extipy_call(ctx, &call, NULL, &e, &t->err);

    /* What Python has no memory for is left out, and else nothing. */
    if (rc == EXTIPY_E_RAISED && strcmp(e->type, "MemoryError") != 0)
        rc = way.python || (e->cause && e->cause->object) ? 0 : EXTIPY_E_STATE;
    extipy_exception_free(e);
    return rc;
}

static void exceptions_are_described(void **state)
{
    fail_each(*state, raise_one, own);
    fail_each(*state, raise_one, pythons);
}

static int share_array(struct test *t)
{
    struct extipy_buffer *b = NULL;
    int rc = extipy_buffer_of(&b, array, 1, NULL, &t->err);

    extipy_buffer_release(b);
    return rc;
}

static void arrays_are_shared(void **state)
{
    fail_each(*state, share_array, own);
    fail_each(*state, share_array, pythons);
}

/* CPython 3.11 itself does not survive each failure while it compiles, so this is compiled. */
static int print_pieces(struct test *t)
{
    struct extipy_call call = {.size = sizeof call, .function = "__main__:write"};

    return extipy_call(ctx, &call, NULL, NULL, &t->err);
}

static int run_source(struct test *t)
{
    return extipy_exec(ctx, "array[0] += 1", NULL, &t->err);
}

static void lines_are_delivered(void **state)
{
    fail_each(*state, print_pieces, own);
    fail_each(*state, print_pieces, pythons);
}

static void sources_are_run(void **state)
{
    const struct way first_ones = {.python = true, .most = 20};

    fail_each(*state, run_source, first_ones);
}

/* ---- threads and jobs ---- */

static int go_deep(struct test *t)
{
    int rc = 0, depth = 0;

    while (rc == 0 && depth < 20) {
        rc = extipy_enter(ctx, &t->err);
        depth += rc == 0;
    }
    for (; depth > 0; depth--)
        host_must(extipy_leave(ctx, NULL));
    return rc;
}

/* What a new thread has not got yet. */
static void *visit(void *arg)
{
    struct test *t = arg;
    int rc = go_deep(t);

    return (void *)(intptr_t)(rc == 0 ? extipy_detach(ctx, &t->err) : rc);
}

static int visit_on_thread(struct test *t)
{
    pthread_t thread;
    void *rc;

    start_thread(&thread, visit, t);
    pthread_join(thread, &rc);
    return (int)(intptr_t)rc;
}

static void *submit_and_wait(void *arg)
{
    struct test *t = arg;
    struct extipy_job *job = NULL;
    struct extipy_call call = {.size = sizeof call, .function = "__main__:same"};
    int rc = extipy_submit(&job, ctx, &call, NULL, &t->err);

    if (rc == 0)
        rc = extipy_job_wait(job, -1, &t->err);
    /* Without memory to wait for it, it runs all the same. */
    while (rc != 0 && job && extipy_job_result(job, NULL, NULL, NULL) == EXTIPY_E_STATE)
        usleep(1000);
    extipy_job_release(job);
    return (void *)(intptr_t)rc;
}

static int submit_on_thread(struct test *t)
{
    pthread_t thread;
    void *rc;

    start_thread(&thread, submit_and_wait, t);
    pthread_join(thread, &rc);
    return (int)(intptr_t)rc;
}

static int visited;

/* Called by a thread of Python's. */
static void visit_back(void)
{
    struct exti_error err;

    visited = extipy_enter(ctx, &err);
    if (visited == 0)
        host_must(extipy_leave(ctx, NULL));
}

static int visit_on_pythons_thread(struct test *t)
{
    char source[256];
    int rc;

    snprintf(source, sizeof source,
             "import ctypes, threading\n"
             "back = threading.Thread(target=ctypes.CFUNCTYPE(None)(%lu))\n"
             "back.start(); back.join()\n",
             host_address(visit_back));
    visited = EXTI_E_ARG;
    rc = extipy_exec(ctx, source, NULL, &t->err);
    if (rc == 0 && visited != 0)
        t->err = (struct exti_error){.code = visited, .offset = EXTI_NO_OFFSET, .message = "none"};
    return rc ? rc : visited;
}

/* CPython 3.11 itself does not survive a failure while it makes a thread state. */
static void threads_enter(void **state)
{
    fail_each(*state, visit_on_thread, own);
    fail_each(*state, visit_on_pythons_thread, own);
}

static int submit_to_queue(struct test *t)
{
    struct extipy_job_opts opts = {.size = sizeof opts, .timeout = UINT64_C(3600000000000)};
    struct extipy_call call = {.size = sizeof call, .function = "__main__:same"};
    struct extipy_job *job = NULL;
    int rc = extipy_queue_new(&opts.queue, &t->err);

    if (rc == 0)
        rc = extipy_submit(&job, ctx, &call, &opts, &t->err);
    if (rc == 0) {
        host_must(extipy_job_wait(job, -1, NULL));
        rc = extipy_job_result(job, NULL, NULL, &t->err);
        extipy_job_release(extipy_queue_next(opts.queue));
    }
    extipy_job_release(job);
    extipy_queue_free(opts.queue);
    return rc;
}

static void jobs_are_run(void **state)
{
    fail_each(*state, submit_to_queue, own);
    fail_each(*state, submit_on_thread, own);
    fail_each(*state, submit_to_queue, pythons);
}

/* ---- contexts ---- */

static int open_and_close(struct test *t, int on_caller)
{
    const struct extipy_setting isolated = {.name = "isolated", .number = 1};
    const char *const argv[] = {"a", "b"};
    const struct extipy_opts opts = {.size = sizeof opts,
                                     .settings = &isolated,
                                     .setting_count = 1,
                                     .argv = argv,
                                     .argc = 2,
                                     .output = hear,
                                     .stderr_fd = 2,
                                     .on_caller = on_caller};
    struct extipy_ctx *c = NULL;
    int rc = extipy_open(&c, host_python(), &opts, &t->err);

    if (rc == 0)
        host_close(c);
    return rc;
}

static int open_own_thread(struct test *t)
{
    return open_and_close(t, 0);
}

static int open_on_caller(struct test *t)
{
    return open_and_close(t, 1);
}

static void contexts_start(void **state)
{
    const struct way of_module = {.python = true, .begin = AT_MODULE, .most = 6},
                     of_output = {.python = true, .begin = AT_OUTPUT, .most = 12, .stride = 3};

    fail_each(*state, open_own_thread, own);
    fail_each(*state, open_on_caller, own);
    fail_each(*state, open_own_thread, of_module);
    fail_each(*state, open_on_caller, of_output);
}

/* The thread that runs jobs is started by the first one. */
static int submit_first(struct test *t)
{
    struct extipy_call call = {.size = sizeof call, .function = "os:getpid"};
    struct extipy_job *job = NULL;
    struct extipy_ctx *c = host_open();
    int rc;

    begin_failing(BY_THE_TEST);
    rc = extipy_submit(&job, c, &call, NULL, &t->err);
    assert_true((rc == 0) == (job != NULL));
    /* The thread is started by another one. */
    while (job && extipy_job_result(job, NULL, NULL, NULL) == EXTIPY_E_STATE)
        usleep(1000);
    failing = false;
    if (job)
        rc = extipy_job_result(job, NULL, NULL, &t->err);
    extipy_job_release(job);
    if (rc != 0)
        host_must(extipy_submit(&job, c, &call, NULL, NULL));
    if (rc != 0)
        host_must(host_end(job, NULL));
    host_close(c);
    return rc;
}

static void first_jobs_are_run(void **state)
{
    const struct way by_test = {.begin = BY_THE_TEST};

    fail_each(*state, submit_first, by_test);
}

static void contexts_end(void **state)
{
    const struct way at_end = {.python = true, .begin = AT_END, .most = 8, .silent = true};

    fail_each(*state, open_own_thread, at_end);
}

/* ---- pools ---- */

static const char *const modules[] = {"json"};
static const struct extipy_pool_opts warm = {
    .size = sizeof warm, .count = 1, .imports = modules, .import_count = 1, .source = "x = 1"};

static void *open_pool(void *arg)
{
    struct test *t = arg;
    struct extipy_pool *pool = NULL;
    int rc = extipy_pool_open(&pool, host_python(), &warm, &t->err);

    if (rc == 0) {
        host_must(extipy_pool_close(pool, NULL, NULL, NULL, NULL));
        extipy_pool_free(pool);
    }
    return (void *)(intptr_t)rc;
}

/* By a thread that the library does not know yet. */
static int open_pool_on_thread(struct test *t)
{
    pthread_t thread;
    void *rc;

    start_thread(&thread, open_pool, t);
    pthread_join(thread, &rc);
    return (int)(intptr_t)rc;
}

/* What is refused to the thread that closes replaced contexts is done by the pool's own. */
static int retire_one(struct test *t)
{
    struct extipy_closed closed = {.size = sizeof closed};
    struct extipy_pool_opts lazy = warm;
    struct extipy_pool *pool = NULL;
    struct extipy_ctx *c = NULL;

    (void)t;
    lazy.lazy = 1;
    host_must(extipy_pool_open(&pool, host_python(), &lazy, NULL));
    host_must(extipy_pool_acquire(&c, pool, -1, NULL));
    begin_failing(BY_THE_TEST);
    host_must(extipy_pool_give_back(pool, c, 1, NULL));
    for (int i = 0; i < 100 && failing && !failed; i++)
        usleep(1000);
    failing = false;
    host_must(extipy_pool_close(pool, NULL, NULL, &closed, NULL));
    assert_int_equal(closed.attached + closed.mapped + closed.buffers, 0);
    extipy_pool_free(pool);
    return 0;
}

static void pools_open(void **state)
{
    const struct way all_after = {.on = true, .stride = 2};

    fail_each(*state, open_pool_on_thread, all_after);
}

static void pools_replace(void **state)
{
    const struct way by_test = {.begin = BY_THE_TEST, .most = 2, .silent = true};

    fail_each(*state, retire_one, by_test);
}

/* ---- buffers that outlive their context ---- */

static void memory_stays_if_no_thread_can_end_its_context(void **state)
{
    struct test *t = *state;
    struct extipy_call call = {.size = sizeof call, .function = "builtins:bytearray", .stay = 1};
    struct extipy_buffer_info info = {.size = sizeof info};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *v = NULL, *result = NULL;
    struct extipy_buffer *b = NULL;
    struct extipy_ctx *c = host_open();
    size_t text;

    host_must(extipy_values_new(&v, NULL));
    text = extipy_bytes(v, "memory", 6);
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, &text, 1);
    host_must(extipy_call(c, &call, &result, NULL, NULL));
    host_must(extipy_value(result, 1, &value));
    host_must(extipy_buffer_of(&b, value.object, 0, NULL, NULL));
    extipy_values_free(result);
    extipy_values_free(v);
    way = (struct way){.begin = BY_THE_TEST};
    first = 0;
    begin_failing(BY_THE_TEST);
    assert_int_equal(extipy_close(c, NULL, NULL, NULL, &t->err), EXTI_E_IO);
    failing = false;
    assert_says(&t->err, "thread");
    assert_int_equal(extipy_lingering(), 1);
    host_must(extipy_buffer_info(b, &info));
    assert_memory_equal(info.data, "memory", 6);
    extipy_buffer_release(b);
}

/* ---- the one context ---- */

static int open_context(void **state)
{
    const struct extipy_opts opts = {.size = sizeof opts, .output = hear};
    struct extipy_call call = {.size = sizeof call, .function = "__main__:get", .stay = 1};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *result = NULL;

    (void)state;
    way.begin = BY_THE_TEST;
    host_must(extipy_open(&ctx, host_python(), &opts, NULL));
    host_must(extipy_exec(ctx, functions, NULL, NULL));
    host_must(extipy_call(ctx, &call, &result, NULL, NULL));
    host_must(extipy_value(result, 1, &value));
    array = extipy_object_keep(value.object);
    extipy_values_free(result);
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    extipy_object_release(array);
    host_close(ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(values_go_there_and_back),
        exti_test(exceptions_are_described),
        exti_test(arrays_are_shared),
        exti_test(lines_are_delivered),
        exti_test(sources_are_run),
        exti_test(threads_enter),
        exti_test(jobs_are_run),
        exti_test(contexts_start),
        exti_test(first_jobs_are_run),
        exti_test(contexts_end),
        exti_test(pools_open),
        exti_test(pools_replace),
        exti_test(memory_stays_if_no_thread_can_end_its_context),
    };

    test_time_limit(900);
    return cmocka_run_group_tests_name("python/nomem", tests, open_context, close_context);
}
