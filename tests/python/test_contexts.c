/* Contexts are found, opened and closed through the public header. */
#include "tests/python/support/host.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void an_installation_says_what_it_is(void **state)
{
    struct extipy_python_info info = {.size = sizeof info, .debug = 7};

    (void)state;
    assert_int_equal(extipy_python_info(host_python(), &info), 0);
    assert_true(info.minor >= 9);
    assert_contains(info.version, "3.");
    assert_int_equal(access(info.libpython, R_OK), 0);
    assert_int_equal(access(info.executable, X_OK), 0);
    /* A caller that knows less. */
    info = (struct extipy_python_info){.size = offsetof(struct extipy_python_info, debug)};
    info.debug = 7;
    assert_int_equal(extipy_python_info(host_python(), &info), 0);
    assert_int_equal(info.debug, 7);
    assert_true(info.minor >= 9);
    info.size = 1;
    assert_int_equal(extipy_python_info(host_python(), &info), EXTI_E_ARG);
}

static void what_is_no_interpreter_is_refused(void **state)
{
    struct extipy_python *python = NULL;
    struct test *t = *state;

    assert_int_equal(extipy_find(&python, "/nonexistent/python3", &t->err), EXTI_E_IO);
    assert_int_equal(extipy_find(&python, "/bin/true", &t->err), EXTI_E_ARG);
    assert_says(&t->err, "did not describe itself");
    assert_int_equal(extipy_find(NULL, NULL, &t->err), EXTI_E_ARG);
    assert_null(python);
}

static void an_installation_is_found_on_the_path_and_freed(void **state)
{
    struct extipy_python_info info = {.size = sizeof info};
    struct extipy_python *python = NULL;
    struct test *t = *state;

    if (access("/usr/bin/python3", X_OK) != 0)
        skip_because("there is no /usr/bin/python3");
    setenv("PATH", "/usr/bin:/bin", 1);
    assert_ok(extipy_find(&python, NULL, &t->err), &t->err);
    assert_int_equal(extipy_python_info(python, &info), 0);
    assert_contains(info.executable, "/usr/bin/python3");
    assert_int_equal(extipy_python_info(python, NULL), EXTI_E_ARG);
    assert_int_equal(extipy_python_info(NULL, &info), EXTI_E_ARG);
    extipy_python_free(python);
    extipy_python_free(NULL);
}

static void wrong_arguments_are_refused(void **state)
{
    struct extipy_closed small = {.size = 1};
    const struct extipy_opts wrong[] = {
        {.size = sizeof *wrong, .stdout_fd = -1},
        {.size = sizeof *wrong, .stderr_fd = -1},
        {.size = sizeof *wrong, .index = -1},
        {.size = sizeof *wrong, .count = -1},
        {.size = sizeof *wrong, .flags = EXTI_CTX_COPY_ONLY},
        {.size = 1},
    };
    struct extipy_ctx *c = NULL;
    struct test *t = *state;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(extipy_open(&c, host_python(), &wrong[i], &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_open(NULL, host_python(), NULL, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_open(&c, NULL, NULL, &t->err), EXTI_E_ARG);
    assert_null(c);
    assert_null(extipy_loader(NULL));
    assert_int_equal(extipy_enter(NULL, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_close(NULL, NULL, NULL, NULL, &t->err), 0);
    c = host_open();
    assert_int_equal(extipy_close(c, NULL, NULL, &small, &t->err), EXTI_E_ARG);
    host_run(c, "still_open = 1");
    host_close(c);
}

static void contexts_are_apart(void **state)
{
    struct extipy_ctx *a = host_open(), *b = host_open();
    void *none[2];

    (void)state;
    host_run(a, "import sys, json; json.mine = 1; x = 20");
    host_run(b, "import sys, json; assert not hasattr(json, 'mine'); x = 22");
    assert_int_equal(host_long(a, "x") + host_long(b, "x"), 42);
    host_symbol(a, "_Py_NoneStruct", &none[0]);
    host_symbol(b, "_Py_NoneStruct", &none[1]);
    assert_ptr_not_equal(none[0], none[1]);
    host_close(a);
    host_close(b);
}

static void numpy_works_in_each(void **state)
{
    struct extipy_ctx *c[2] = {host_open(), host_open()};

    (void)state;
    for (int i = 0; i < 2; i++)
        host_run(c[i], "try:\n"
                       "    import numpy\n"
                       "    x = int((numpy.ones((64, 64)) @ numpy.ones((64, 64))).sum())\n"
                       "except ImportError:\n"
                       "    x = 64 ** 3\n");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(host_long(c[i], "x"), 64 * 64 * 64);
        host_close(c[i]);
    }
}

static void settings_are_the_interpreters_own(void **state)
{
    const char *warnings[] = {"error::ResourceWarning"}, *argv[] = {"program", "one"};
    const struct extipy_setting settings[] = {
        {.name = "isolated", .number = 1},
        {.name = "dev_mode", .number = 1},
        {.name = "optimization_level", .number = 2},
        {.name = "warnoptions", .kind = EXTIPY_SET_LIST, .list = warnings, .count = 1},
        {.name = "pycache_prefix", .kind = EXTIPY_SET_TEXT, .text = "/nowhere"},
    };
    const struct extipy_setting unknown = {.name = "no_such_option", .number = 1};
    struct extipy_opts o = {
        .size = sizeof o, .settings = settings, .setting_count = 5, .name = "mine"};
    struct extipy_ctx *c = NULL;
    struct test *t = *state;

    o.argv = argv;
    o.argc = 2;
    assert_ok(extipy_open(&c, host_python(), &o, &t->err), &t->err);
    assert_string_equal(exti_ctx_name(extipy_loader(c)), "mine");
    host_run(c, "import sys\n"
                "f = sys.flags\n"
                "assert f.isolated == 1 and f.dev_mode and f.optimize == 2, f\n"
                "assert 'error::ResourceWarning' in sys.warnoptions, sys.warnoptions\n"
                "assert sys.pycache_prefix == '/nowhere', sys.pycache_prefix\n"
                "assert sys.argv == ['program', 'one'], sys.argv\n");
    host_close(c);
    c = NULL;
    o = (struct extipy_opts){.size = sizeof o, .settings = &unknown, .setting_count = 1};
    assert_int_not_equal(extipy_open(&c, host_python(), &o, &t->err), 0);
    assert_says(&t->err, "no_such_option");
    assert_null(c);
    o.settings = &(const struct extipy_setting){.name = "isolated", .kind = EXTIPY_SET_LIST + 1};
    assert_int_equal(extipy_open(&c, host_python(), &o, &t->err), EXTI_E_ARG);
    o.settings = &(const struct extipy_setting){.number = 1};
    assert_int_equal(extipy_open(&c, host_python(), &o, &t->err), EXTI_E_ARG);
    assert_says(&t->err, "setting 0");
    c = host_open();
    host_run(c, "import sys; assert sys.argv == [''], sys.argv");
    host_close(c);
}

static void the_module_extisolate_tells_of_the_context(void **state)
{
    struct extipy_opts o = {.size = sizeof o, .name = "third", .index = 2, .count = 5};
    struct extipy_ctx *c = NULL;
    struct test *t = *state;

    assert_ok(extipy_open(&c, host_python(), &o, &t->err), &t->err);
    host_run(c, "import extisolate as e\n"
                "assert (e.index, e.count, e.name) == (2, 5, 'third')\n");
    host_close(c);
    c = host_open();
    host_run(c, test_format(t,
                            "import extisolate as e\n"
                            "assert (e.index, e.count, e.name) == (0, 1, '%s')\n",
                            exti_ctx_name(extipy_loader(c))));
    host_close(c);
    o.count = -1;
    assert_int_equal(extipy_open(&c, host_python(), &o, &t->err), EXTI_E_ARG);
    assert_says(&t->err, "count");
}

static void options_of_other_versions_are_understood(void **state)
{
    struct {
        struct extipy_opts known;
        long later;
    } newer = {.known = {.size = sizeof newer}, .later = 1};
    struct extipy_opts older = {.size = offsetof(struct extipy_opts, dir), .flags = 1u << 31};
    struct extipy_opts copying = {.size = sizeof copying, .flags = EXTI_CTX_COPY_ONLY};
    struct extipy_ctx *c = NULL;
    struct test *t = *state;

    assert_int_equal(extipy_open(&c, host_python(), &newer.known, &t->err), EXTI_E_ARG);
    assert_says(&t->err, "does not know");
    assert_int_equal(extipy_open(&c, host_python(), &copying, &t->err), EXTI_E_ARG);
    newer.later = 0;
    assert_ok(extipy_open(&c, host_python(), &newer.known, &t->err), &t->err);
    host_close(c);
    /* What lies behind its size is not looked at. */
    assert_ok(extipy_open(&c, host_python(), &older, &t->err), &t->err);
    host_close(c);
    older.size = 0;
    assert_int_equal(extipy_open(&c, host_python(), &older, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_open(NULL, host_python(), NULL, &t->err), EXTI_E_ARG);
    assert_int_equal(extipy_open(&c, NULL, NULL, &t->err), EXTI_E_ARG);
}

static void a_start_that_fails_says_why(void **state)
{
    struct extipy_ctx *c = NULL;
    struct test *t = *state;

    setenv("PYTHONHASHSEED", "many", 1);
    assert_int_equal(extipy_open(&c, host_python(), NULL, &t->err), EXTI_E_LOAD);
    unsetenv("PYTHONHASHSEED");
    assert_says(&t->err, "PYTHONHASHSEED");
    assert_null(c);
    c = host_open();
    host_close(c);
}

/* What runs before the context is told of is the program's environment's. */
static void a_start_that_python_code_breaks_says_where(void **state)
{
    static const struct {
        const char *file, *source, *message;
    } ways[] = {
        {"threading.py", "raise KeyError('none')", "cannot import threading"},
        {"sitecustomize.py", "import sys; sys.modules['io'] = None", "its output streams"},
    };
    struct extipy_opts opts = {.size = sizeof opts, .stdout_fd = 1};
    struct extipy_ctx *c = NULL;
    struct test *t = *state;

    for (size_t i = 0; i < 2 * ARRAY_SIZE(ways); i++) {
        char *file = test_path(t, ways[i / 2].file);

        opts.on_caller = i % 2;
        test_write(file, ways[i / 2].source, strlen(ways[i / 2].source));
        setenv("PYTHONPATH", t->dir, 1);
        assert_int_equal(extipy_open(&c, host_python(), &opts, &t->err), EXTI_E_LOAD);
        unsetenv("PYTHONPATH");
        assert_says(&t->err, "CPython did not start");
        assert_says(&t->err, ways[i / 2].message);
        assert_null(c);
        assert_int_equal(unlink(file), 0);
    }
    host_close(host_open());
}

static void signals_are_the_programs(void **state)
{
    struct sigaction before[32], now;
    struct extipy_ctx *c;

    (void)state;
    for (int sig = 1; sig < 32; sig++)
        assert_int_equal(sigaction(sig, NULL, &before[sig]), 0);
    c = host_open();
    host_run(c, "import asyncio, signal\n"
                "x = signal.getsignal(signal.SIGINT) == signal.SIG_DFL\n");
    assert_int_equal(host_long(c, "x"), 1);
    for (int sig = 1; sig < 32; sig++) {
        assert_int_equal(sigaction(sig, NULL, &now), 0);
        assert_ptr_equal(now.sa_handler, before[sig].sa_handler);
    }
    host_close(c);
}

static void the_end_is_pythons(void **state)
{
    struct test *t = *state;
    char *path = test_path(t, "said"), *said;
    struct extipy_ctx *c = host_open();

    host_run(c, test_format(t,
                            "import atexit, threading, time\n"
                            "def say(what):\n"
                            "    with open('%s', 'a') as f: f.write(what)\n"
                            "def work():\n"
                            "    time.sleep(0.2); say('thread ')\n"
                            "atexit.register(say, 'atexit ')\n"
                            "threading.Thread(target=work, daemon=False).start()\n"
                            "main = threading.main_thread() is threading.current_thread()\n",
                            path));
    assert_int_equal(host_long(c, "main"), 0);
    host_close(c);
    said = test_read(t, path, NULL);
    assert_string_equal(said, "thread atexit ");
}

static long resident_kb(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long pages = -1;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* CPython itself leaves 9 MB behind. */
static struct extipy_ctx *closing;
static sem_t arrived, go_on;

static void *attach_and_detach(void *arg)
{
    (void)arg;
    host_must(extipy_enter(closing, NULL));
    host_must(extipy_leave(closing, NULL));
    sem_post(&arrived);
    sem_wait(&go_on);
    host_must(extipy_detach(closing, NULL));
    sem_post(&arrived);
    sem_wait(&go_on); /* one that has ended holds nothing */
    return NULL;
}

static void *close_it(void *mapped)
{
    struct extipy_closed closed = {.size = sizeof closed};

    host_must(extipy_close(closing, NULL, NULL, &closed, NULL));
    *(size_t *)mapped = closed.mapped;
    return NULL;
}

/* Python's finalisation ends the thread's state then. */
static void a_thread_may_detach_while_the_context_is_finalised(void **state)
{
    pthread_t other, closer;
    size_t mapped = 1;

    (void)state;
    sem_init(&arrived, 0, 0);
    sem_init(&go_on, 0, 0);
    closing = host_open();
    host_define_block(closing);
    host_run(closing, "import atexit\natexit.register(block, 1)");
    assert_int_equal(extipy_detach(closing, NULL), 0);
    assert_int_equal(pthread_create(&other, NULL, attach_and_detach, NULL), 0);
    sem_wait(&arrived);
    assert_int_equal(pthread_create(&closer, NULL, close_it, &mapped), 0);
    host_await_blocked();
    sem_post(&go_on);
    sem_wait(&arrived);
    host_unblock();
    assert_int_equal(pthread_join(closer, NULL), 0);
    sem_post(&go_on);
    assert_int_equal(pthread_join(other, NULL), 0);
    assert_int_equal(mapped, 0);
}

static void memory_is_given_back(void **state)
{
    long before = 0;

    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip_because("a sanitizer keeps memory");
#endif
    for (int i = 0; i < 9; i++) {
        struct extipy_ctx *c = host_open();

        host_run(c, "import json, decimal, ctypes; x = [bytes(99) for _ in range(9999)]");
        host_close(c);
        if (i == 3)
            before = resident_kb();
    }
    assert_true(resident_kb() - before < 5 * 1024);
}

static void codes_have_names(void **state)
{
    (void)state;
    assert_string_equal(extipy_code_name(EXTIPY_E_CLOSED), "EXTIPY_E_CLOSED");
    assert_string_equal(extipy_code_name(EXTIPY_E_PLACE), "EXTIPY_E_PLACE");
    assert_string_equal(extipy_code_name(EXTIPY_E_RAISED), "EXTIPY_E_RAISED");
    assert_string_equal(extipy_code_name(EXTIPY_E_CANCELLED), "EXTIPY_E_CANCELLED");
    assert_string_equal(extipy_code_name(EXTIPY_E_TIMEOUT), "EXTIPY_E_TIMEOUT");
    assert_string_equal(extipy_code_name(EXTIPY_E_STATE), "EXTIPY_E_STATE");
    assert_string_equal(extipy_code_name(EXTI_E_LOAD), "EXTI_E_LOAD");
    assert_string_equal(extipy_code_name(-999), exti_code_name(-999));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        exti_test(an_installation_says_what_it_is),
        exti_test(what_is_no_interpreter_is_refused),
        exti_test(an_installation_is_found_on_the_path_and_freed),
        exti_test(wrong_arguments_are_refused),
        exti_test(contexts_are_apart),
        exti_test(numpy_works_in_each),
        exti_test(settings_are_the_interpreters_own),
        exti_test(the_module_extisolate_tells_of_the_context),
        exti_test(options_of_other_versions_are_understood),
        exti_test(a_start_that_fails_says_why),
        exti_test(a_start_that_python_code_breaks_says_where),
        exti_test(signals_are_the_programs),
        exti_test(the_end_is_pythons),
        exti_test(a_thread_may_detach_while_the_context_is_finalised),
        exti_test(memory_is_given_back),
        exti_test(codes_have_names),
    };

    return cmocka_run_group_tests_name("python/contexts", tests, NULL, NULL);
}
