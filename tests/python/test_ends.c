/* Code of a context ends that context alone: its calls and jobs end with an error, and pools replace
 * it. */
#define _GNU_SOURCE
#include "tests/python/support/host.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS INT64_C(1000000000)

static struct extipy_ctx *ctx;

static int open_context(void **state)
{
    (void)state;
    ctx = host_open();
    host_define_block(ctx);
    host_run(ctx,
             "import atexit, os, threading, time\n"
             "def leave(n):\n"
             "    try:\n"
             "        os._exit(n)\n"
             "    finally:\n"
             "        print('finally')\n"
             "def execute(n):\n"
             "    os.execv('/bin/sh', ['sh', '-c', f'exit {n}'])\n"
             "def leave_by_thread(n):\n"
             "    threading.Thread(target=os._exit, args=(n,)).start()\n"
             "    while True:\n"
             "        time.sleep(0.01)\n"
             "def leave_by_watchdog(n):\n"
             "    import faulthandler\n"
             "    faulthandler.dump_traceback_later(0.1, exit=True, file=open(os.devnull, 'w'))\n"
             "    while True:\n"
             "        time.sleep(0.01)\n"
             "def same(n):\n"
             "    return n\n");
    return 0;
}

/* It stays mapped, as its threads may be in it. */
static int close_ended(void **state)
{
    struct extipy_closed closed = {.size = sizeof closed};
    struct exti_error err = {0};

    (void)state;
    assert_ok(extipy_close(ctx, NULL, NULL, &closed, &err), &err);
    assert_true(closed.mapped > 0);
    return 0;
}

#define with_context(f) cmocka_unit_test_setup_teardown(f, open_context, close_ended)

static int call(struct extipy_ctx *c, const char *function, long n, struct exti_error *err)
{
    struct extipy_call what = {.size = sizeof what, .function = function};
    struct extipy_values *v;
    size_t number;
    int rc;

    assert_ok(extipy_values_new(&v, err), err);
    number = extipy_int(v, n);
    what.values = v;
    what.args = extipy_container(v, EXTIPY_TUPLE, &number, 1);
    rc = extipy_call(c, &what, NULL, NULL, err);
    extipy_values_free(v);
    return rc;
}

static void assert_ended(struct extipy_ctx *c, int status)
{
    struct exti_error err = {0};

    assert_int_equal(extipy_exit_status(c), status);
    assert_int_equal(extipy_enter(c, &err), EXTIPY_E_EXITED);
    assert_int_equal(call(c, "__main__:same", 1, &err), EXTIPY_E_EXITED);
    assert_int_equal(extipy_submit(NULL, c,
                                   &(struct extipy_call){.size = sizeof(struct extipy_call),
                                                         .function = "__main__:same"},
                                   NULL, &err),
                     EXTIPY_E_EXITED);
    assert_ok(extipy_detach(c, &err), &err);
}

/* ---- calls ---- */

static void a_call_ends_with_the_status(void **state)
{
    struct exti_error err = {0};

    (void)state;
    assert_int_equal(extipy_exit_status(ctx), -1);
    assert_int_equal(call(ctx, "__main__:leave", 5, &err), EXTIPY_E_EXITED);
    assert_says(&err, "status is 5");
    assert_ended(ctx, 5);
}

static void a_source_ends_too(void **state)
{
    struct exti_error err = {0};

    (void)state;
    assert_int_equal(extipy_exec(ctx, "leave(6)", NULL, &err), EXTIPY_E_EXITED);
    assert_ended(ctx, 6);
}

/* By its path: the thread sanitizer's vfork is fork, and the errors of a search are not seen through that;
 * tests/runtime/test_ends.sh has a search. */
static void a_program_that_is_executed_tells_its_status(void **state)
{
    struct exti_error err = {0};

    (void)state;
    assert_int_equal(call(ctx, "__main__:execute", 7, &err), EXTIPY_E_EXITED);
    assert_ended(ctx, 7);
}

static int run_leave(void *user, struct exti_error *err)
{
    (void)user, (void)err;
    return host_run_inside(ctx, "leave(8)") ? -1 : 3;
}

static void a_visit_ends_too(void **state)
{
    struct exti_error err = {0};

    (void)state;
    assert_int_equal(extipy_visit(ctx, run_leave, NULL, &err), EXTIPY_E_EXITED);
    assert_ended(ctx, 8);
}

static void others_go_on(void **state)
{
    struct extipy_ctx *other = host_open();
    struct exti_error err = {0};

    (void)state;
    host_run(other, "def same(n): return n");
    assert_int_equal(call(ctx, "__main__:leave", 1, &err), EXTIPY_E_EXITED);
    assert_ok(call(other, "__main__:same", 1, &err), &err);
    host_close(other);
}

/* ---- several contexts on one thread ---- */

/* libffi, which calls for the copy, is none. */
static void the_one_that_the_thread_has_entered_ends(void **state)
{
    struct extipy_ctx *other = host_open();
    struct exti_error err = {0};

    (void)state;
    host_run(other, "def same(n): return n");
    assert_int_equal(extipy_exec(ctx, "import ctypes; ctypes.CDLL(None)._exit(5)", NULL, &err),
                     EXTIPY_E_EXITED);
    assert_ended(ctx, 5);
    assert_ok(call(other, "__main__:same", 1, &err), &err);
    host_close(other);
}

static struct extipy_ctx *inner;
static int inner_rc;

static void call_inner(void)
{
    struct exti_error err = {0};

    inner_rc = call(inner, "__main__:leave", 4, &err);
}

static void the_context_that_has_called_goes_on(void **state)
{
    struct extipy_ctx *outer = host_open();
    char source[256];

    (void)state;
    inner = ctx;
    snprintf(source, sizeof source, "import ctypes; ctypes.CFUNCTYPE(None)(%lu)(); gone_on = 1",
             host_address(call_inner));
    host_run(outer, source);
    assert_int_equal(inner_rc, EXTIPY_E_EXITED);
    assert_int_equal(host_long(outer, "gone_on"), 1);
    assert_ended(ctx, 4);
    host_close(outer);
}

/* ---- jobs ---- */

static void a_job_ends_and_those_that_wait(void **state)
{
    struct extipy_job *jobs[3];
    struct exti_error err = {0};

    (void)state;
    jobs[0] = host_submit(ctx, "__main__:block", 1, NULL);
    host_await_blocked();
    jobs[1] = host_submit(ctx, "__main__:leave", 9, NULL);
    jobs[2] = host_submit(ctx, "__main__:same", 1, NULL);
    host_unblock();
    assert_int_equal(host_end(jobs[0], NULL), 0);
    for (int i = 1; i < 3; i++) {
        assert_ok(extipy_job_wait(jobs[i], 60 * SECONDS, &err), &err);
        assert_int_equal(extipy_job_result(jobs[i], NULL, NULL, &err), EXTIPY_E_EXITED);
        assert_says(&err, "status is 9");
        extipy_job_release(jobs[i]);
    }
    assert_ended(ctx, 9);
}

static void a_thread_of_the_context_ends_the_job(void **state)
{
    struct extipy_job *job = host_submit(ctx, "__main__:leave_by_thread", 3, NULL);
    struct exti_error err = {0};

    (void)state;
    assert_ok(extipy_job_wait(job, 60 * SECONDS, &err), &err);
    assert_int_equal(extipy_job_result(job, NULL, NULL, &err), EXTIPY_E_EXITED);
    extipy_job_release(job);
    assert_ended(ctx, 3);
}

/* The job is in native code, and does not come back. */
static void a_job_that_does_not_return_ends_as_well(void **state)
{
    struct extipy_job *job;
    struct exti_error err = {0};

    (void)state;
    host_run(ctx, "def wait(n):\n"
                  "    threading.Timer(0.1, os._exit, (n,)).start()\n"
                  "    block(n)\n");
    job = host_submit(ctx, "__main__:wait", 3, NULL);
    assert_ok(extipy_job_wait(job, 60 * SECONDS, &err), &err);
    assert_int_equal(extipy_job_result(job, NULL, NULL, &err), EXTIPY_E_EXITED);
    extipy_job_release(job);
    assert_ended(ctx, 3);
    close_ended(NULL);
    host_unblock();
    ctx = host_open();
    assert_int_equal(call(ctx, "os:_exit", 0, &err), EXTIPY_E_EXITED);
}

static void faulthandlers_watchdog_ends_calls(void **state)
{
    struct exti_error err = {0};

    (void)state;
    assert_int_equal(call(ctx, "__main__:leave_by_watchdog", 0, &err), EXTIPY_E_EXITED);
    assert_ended(ctx, 1);
}

struct caller {
    pthread_t id;
    int rc;
};

static void *call_for_ever(void *arg)
{
    struct caller *c = arg;
    struct exti_error err = {0};

    c->rc = extipy_exec(ctx, "inside.append(1)\nwhile True: time.sleep(0.001)", NULL, &err);
    return NULL;
}

static void calls_of_other_threads_end(void **state)
{
    struct caller callers[3];
    struct exti_error err = {0};

    (void)state;
    host_run(ctx, "inside = []");
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&callers[i].id, NULL, call_for_ever, &callers[i]), 0);
    while (host_long(ctx, "len(inside)") < 3)
        usleep(1000);
    assert_int_equal(call(ctx, "__main__:leave", 2, &err), EXTIPY_E_EXITED);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(callers[i].id, NULL), 0);
        assert_int_equal(callers[i].rc, EXTIPY_E_EXITED);
    }
    assert_ended(ctx, 2);
}

/* ---- native code ---- */

static char folder[256];

/* A library whose exit handler calls `last`, as `lib` in __main__ of the context. */
static void load_native(void (*last)(void))
{
    static const char source[] = "#include <stdlib.h>\n"
                                 "void add(void (*last)(void)) { atexit(last); }\n"
                                 "void leave(int status) { exit(status); }\n";
    char text[1024];
    FILE *f;

    snprintf(folder, sizeof folder, "%s/exti-ends-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(text, sizeof text, "%s/native.c", folder);
    f = fopen(text, "w");
    assert_non_null(f);
    fputs(source, f);
    fclose(f);
    snprintf(text, sizeof text, "cc -shared -fPIC -o %s/native.so %s/native.c", folder, folder);
    assert_int_equal(system(text), 0);
    snprintf(text, sizeof text,
             "import ctypes\n"
             "lib = ctypes.CDLL('%s/native.so')\n"
             "lib.add(ctypes.c_void_p(%lu))\n",
             folder, host_address(last));
    host_run(ctx, text);
}

static int remove_native(void **state)
{
    char text[512];

    snprintf(text, sizeof text, "rm -r %s", folder);
    assert_int_equal(system(text), 0);
    return close_ended(state);
}

static sem_t in_handler, go;
static atomic_int calls;

static void wait_in_handler(void)
{
    sem_post(&in_handler);
    while (sem_wait(&go) != 0)
        ;
}

static void *call_leave(void *rc)
{
    char source[256];

    snprintf(source, sizeof source, "ctypes.c_int.from_address(%lu).value += 1; lib.leave(3)",
             host_address(&calls));
    *(int *)rc = extipy_exec(ctx, source, NULL, NULL);
    return NULL;
}

/* The second one waits in exit for the first, whose handlers run. */
static void two_threads_call_exit(void **state)
{
    pthread_t t[2];
    int rcs[2] = {0};

    (void)state;
    sem_init(&in_handler, 0, 0);
    sem_init(&go, 0, 0);
    load_native(wait_in_handler);
    assert_int_equal(pthread_create(&t[0], NULL, call_leave, &rcs[0]), 0);
    while (sem_wait(&in_handler) != 0)
        ;
    assert_int_equal(pthread_create(&t[1], NULL, call_leave, &rcs[1]), 0);
    while (atomic_load(&calls) < 2)
        usleep(1000);
    sem_post(&go);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(t[i], NULL), 0);
        assert_int_equal(rcs[i], EXTIPY_E_EXITED);
    }
    assert_ended(ctx, 3);
}

static void hold(void)
{
    sem_t never;

    sem_init(&never, 0, 0);
    while (sem_wait(&never) != 0)
        ;
}

/* Python's watchdog, a thread of its own, ends the context meanwhile. */
static void a_thread_that_never_lets_go_of_the_gil_blocks_nobody(void **state)
{
    struct extipy_job *job;
    struct exti_error err = {0};
    char source[512];

    (void)state;
    snprintf(source, sizeof source,
             "import ctypes, faulthandler\n"
             "def hold(n):\n"
             "    null = open(os.devnull, 'w')\n"
             "    faulthandler.dump_traceback_later(0.1, exit=True, file=null)\n"
             "    ctypes.PYFUNCTYPE(None)(%lu)()\n",
             host_address(hold));
    host_run(ctx, source);
    job = host_submit(ctx, "__main__:hold", 1, NULL);
    assert_ok(extipy_job_wait(job, 60 * SECONDS, &err), &err);
    assert_int_equal(extipy_job_result(job, NULL, NULL, &err), EXTIPY_E_EXITED);
    extipy_job_release(job);
    assert_ended(ctx, 1);
}

/* ---- threads of Python ---- */

static atomic_ulong turns;

/* It looks at all threads' frames meanwhile, of which one has gone. */
static void threads_of_python_stop(void **state)
{
    struct exti_error err = {0};
    unsigned long n;
    char source[512];

    (void)state;
    snprintf(source, sizeof source,
             "import ctypes, sys, traceback\n"
             "turns = ctypes.c_ulong.from_address(%lu)\n"
             "def turn():\n"
             "    while True:\n"
             "        for f in sys._current_frames().values():\n"
             "            traceback.extract_stack(f)\n"
             "        turns.value += 1\n"
             "        time.sleep(0)\n"
             "threading.Thread(target=turn, daemon=True).start()\n",
             host_address(&turns));
    host_run(ctx, source);
    while (atomic_load(&turns) < 3)
        usleep(1000);
    assert_int_equal(call(ctx, "__main__:leave", 2, &err), EXTIPY_E_EXITED);
    n = atomic_load(&turns);
    host_close(host_open()); /* for a while */
    assert_int_equal(atomic_load(&turns), n);
    assert_ended(ctx, 2);
}

/* The context's own thread has the GIL for ever once that is unpinned. */
static void the_gil_is_to_be_had_while_it_is_pinned(void **state)
{
    struct exti_error err = {0};
    void (*let_go)(int);
    int (*take)(void);

    (void)state;
    host_symbol(ctx, "PyGILState_Ensure", &take);
    host_symbol(ctx, "PyGILState_Release", &let_go);
    assert_ok(extipy_pin(ctx, &err), &err);
    assert_int_equal(call(ctx, "__main__:leave", 3, &err), EXTIPY_E_EXITED);
    for (int i = 0; i < 3; i++)
        let_go(take());
    extipy_unpin(ctx);
    assert_int_equal(extipy_pin(ctx, &err), EXTIPY_E_EXITED);
    assert_ended(ctx, 3);
}

/* ---- the end of the context ---- */

static void an_atexit_function_may_end_it(void **state)
{
    (void)state;
    host_run(ctx, "atexit.register(os._exit, 4)");
}

static void pools_replace_it(void **state)
{
    const struct extipy_pool_opts opts = {.size = sizeof opts, .count = 1};
    struct extipy_ctx *first, *second;
    struct extipy_pool *pool;
    struct exti_error err = {0};

    (void)state;
    assert_ok(extipy_pool_open(&pool, host_python(), &opts, &err), &err);
    assert_ok(extipy_pool_acquire(&first, pool, -1, &err), &err);
    assert_int_equal(call(first, "os:_exit", 3, &err), EXTIPY_E_EXITED);
    assert_ok(extipy_pool_give_back(pool, first, 0, &err), &err);
    assert_ok(extipy_pool_acquire(&second, pool, 60 * SECONDS, &err), &err);
    assert_ok(call(second, "time:sleep", 0, &err), &err);
    assert_ok(extipy_pool_give_back(pool, second, 0, &err), &err);
    assert_ok(extipy_pool_close(pool, NULL, NULL, NULL, &err), &err);
    extipy_pool_free(pool);
}

/* ---- what ends the process ---- */

/* Runs it in a child process, and gives the status. */
static int in_child(void (*body)(void))
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        body();
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void enter_and_leave(void)
{
    struct extipy_ctx *c = host_open();

    host_must(extipy_enter(c, NULL));
    host_run_inside(c, "import os; os._exit(7)");
}

static void leave_with_the_flag(void)
{
    const struct extipy_opts opts = {.size = sizeof opts, .flags = EXTI_CTX_PROCESS_ENDS};
    struct extipy_ctx *c;

    host_must(extipy_open(&c, host_python(), &opts, NULL));
    host_run(c, "import os; os._exit(7)");
}

static int enter_again(void *c, struct exti_error *err)
{
    host_must(extipy_enter(c, err));
    host_run_inside(c, "import os; os._exit(7)");
    return 0;
}

static void leave_above_a_visit(void)
{
    struct extipy_ctx *c = host_open();

    extipy_visit(c, enter_again, c, NULL);
}

/* A thread of a module that the interpreter imports when it starts. */
static void leave_while_it_starts(void)
{
    char dir[] = "exti-site-XXXXXX", name[64];
    FILE *f;

    if (chdir(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp") || !mkdtemp(dir))
        return;
    snprintf(name, sizeof name, "%s/sitecustomize.py", dir);
    f = fopen(name, "w");
    fprintf(f,
            "import os, shutil, threading\n"
            "shutil.rmtree('%s')\n"
            "threading.Thread(target=os._exit, args=(7,)).start()\n"
            "while True: pass\n",
            dir);
    fclose(f);
    setenv("PYTHONPATH", dir, 1);
    host_open();
}

static void control_elsewhere_the_process_ends(void **state)
{
    (void)state;
    host_python();
    assert_int_equal(in_child(enter_and_leave), 7 << 8);
    assert_int_equal(in_child(leave_with_the_flag), 7 << 8);
    assert_int_equal(in_child(leave_above_a_visit), 7 << 8);
    assert_int_equal(in_child(leave_while_it_starts), 7 << 8);
}

/* The process ends by 3, or the context by 4, and can be closed. */
static void leave_in_a_subinterpreter(void)
{
    struct extipy_ctx *c = host_open();
    struct exti_error err = {0};
    int rc = extipy_exec(c,
                         "try:\n"
                         "    import _interpreters as x\n"
                         "except ImportError:\n"
                         "    import _xxsubinterpreters as x\n"
                         "x.run_string(x.create(), 'import os, sys;'\n"
                         "             'os._exit(3 if sys.version_info < (3, 12) else 4)')",
                         NULL, &err);

    if (rc == EXTIPY_E_EXITED && extipy_exit_status(c) == 4 &&
        extipy_close(c, NULL, NULL, NULL, &err) == 0)
        _exit(50);
}

static void a_subinterpreter_ends_the_context_from_3_12_on(void **state)
{
    int status;

    (void)state;
    host_python();
    status = in_child(leave_in_a_subinterpreter);
    assert_true(status == 3 << 8 || status == 50 << 8);
}

static int context_can_be_opened(void **state)
{
    (void)state;
    host_python();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(control_elsewhere_the_process_ends, context_can_be_opened),
        cmocka_unit_test_setup(a_subinterpreter_ends_the_context_from_3_12_on,
                               context_can_be_opened),
        with_context(a_call_ends_with_the_status),
        with_context(a_source_ends_too),
        with_context(a_program_that_is_executed_tells_its_status),
        with_context(a_visit_ends_too),
        with_context(others_go_on),
        with_context(the_one_that_the_thread_has_entered_ends),
        with_context(the_context_that_has_called_goes_on),
        with_context(a_job_ends_and_those_that_wait),
        with_context(a_thread_of_the_context_ends_the_job),
        with_context(a_job_that_does_not_return_ends_as_well),
        with_context(faulthandlers_watchdog_ends_calls),
        with_context(calls_of_other_threads_end),
        cmocka_unit_test_setup_teardown(two_threads_call_exit, open_context, remove_native),
        with_context(a_thread_that_never_lets_go_of_the_gil_blocks_nobody),
        with_context(threads_of_python_stop),
        with_context(the_gil_is_to_be_had_while_it_is_pinned),
        with_context(an_atexit_function_may_end_it),
        cmocka_unit_test(pools_replace_it),
    };

    return cmocka_run_group_tests_name("python/ends", tests, NULL, NULL);
}
