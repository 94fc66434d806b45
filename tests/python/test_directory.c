/* The directory and umask of contexts: of their jobs, and of threads of the program. */
#include "tests/python/support/host.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The case's folder has "0" to "3", and the program is in "0". */
static const char functions[] =
    "import os, threading\n"
    "def go(n): os.chdir(f'../{n}'); os.umask(n); return n\n"
    "def where(n):\n"
    "    mask = os.umask(0); os.umask(mask)\n"
    "    at = int(os.path.basename(os.getcwd()))\n"
    "    return at if at == mask and os.path.exists(f'in-{at}') else -1\n"
    "def on_thread(n):\n"
    "    seen = []\n"
    "    t = threading.Thread(target=lambda: seen.append(where(n)))\n"
    "    t.start(); t.join()\n"
    "    return seen[0]\n";

/* For threads other than the test's own, too. */
static void must_be(long got, long wanted)
{
    if (got == wanted)
        return;
    fprintf(stderr, "it is %ld, not %ld\n", got, wanted);
    abort();
}

static struct extipy_ctx *open_with(uint32_t flags, int on_caller)
{
    const struct extipy_opts opts = {.size = sizeof opts, .flags = flags, .on_caller = on_caller};
    struct extipy_ctx *c = NULL;

    host_must(extipy_open(&c, host_python(), &opts, NULL));
    host_run(c, functions);
    return c;
}

static void begin(struct test *t)
{
    for (int i = 0; i < 4; i++) {
        assert_int_equal(mkdir(test_path(t, (char[]){(char)('0' + i), 0}), 0755), 0);
        test_write(test_path(t, test_format(t, "%d/in-%d", i, i)), "", 0);
    }
    assert_int_equal(chdir(test_path(t, "0")), 0);
    umask(0);
}

/* Back to where tests find what they need. */
static char first[4096];

static int remember(void **state)
{
    return getcwd(first, sizeof first) ? test_setup(state) : -1;
}

static int go_back(void **state)
{
    umask(022);
    return chdir(first) || test_teardown(state) ? -1 : 0;
}

static long job(struct extipy_ctx *c, const char *function, long n)
{
    long result = -1;

    host_must(host_end(host_submit(c, function, n, NULL), &result));
    return result;
}

static long here(void)
{
    char at[4096];
    const mode_t mask = umask(0);

    umask(mask);
    if (!getcwd(at, sizeof at))
        return -1;
    return atol(strrchr(at, '/') + 1) == (long)mask ? (long)mask : -1;
}

static void each_contexts_jobs_have_their_own(void **state)
{
    struct extipy_ctx *c[2];

    begin(*state);
    for (int i = 0; i < 2; i++) {
        c[i] = open_with(0, 0);
        assert_int_equal(extipy_directory(c[i], NULL), 0);
        assert_int_equal(job(c[i], "__main__:where", 0), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(job(c[i], "__main__:go", i + 1), i + 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(job(c[i], "__main__:where", 0), i + 1);
        assert_int_equal(job(c[i], "__main__:on_thread", 0), i + 1);
        /* A call has the caller's. */
        assert_int_equal(host_long(c[i], "where(0)"), 0);
    }
    assert_int_equal(here(), 0);
    assert_int_equal(host_long(c[0], "go(3)"), 3);
    assert_int_equal(here(), 3);
    assert_int_equal(host_long(c[1], "where(0)"), 3);
    assert_int_equal(job(c[0], "__main__:where", 0), 1);
    for (int i = 0; i < 2; i++)
        host_close(c[i]);
}

static void control_contexts_that_share_move_the_process(void **state)
{
    struct extipy_ctx *c[2];
    struct exti_error err = {0};

    begin(*state);
    for (int i = 0; i < 2; i++)
        c[i] = open_with(EXTI_CTX_PROCESS_DIRECTORY, 0);
    assert_int_equal(extipy_directory(c[0], &err), EXTI_E_UNSUPPORTED);
    assert_says(&err, "without one");
    assert_int_equal(extipy_directory(NULL, &err), EXTI_E_ARG);
    assert_int_equal(job(c[0], "__main__:go", 1), 1);
    assert_int_equal(job(c[1], "__main__:where", 0), 1);
    assert_int_equal(here(), 1);
    for (int i = 0; i < 2; i++)
        host_close(c[i]);
}

static void *visit(void *arg)
{
    struct extipy_ctx *c = arg;

    must_be(host_long(c, "where(0)"), 2);
    must_be(here(), 0);
    return NULL;
}

static void callers_share_that_of_the_context_if_it_says_so(void **state)
{
    struct extipy_ctx *c, *other;
    pthread_t thread;

    begin(*state);
    c = open_with(EXTI_CTX_ENTER_DIRECTORY, 0);
    other = open_with(0, 0);
    assert_int_equal(host_long(c, "go(1)"), 1);
    assert_int_equal(here(), 0);
    assert_int_equal(host_long(other, "where(0)"), 0);
    assert_int_equal(job(c, "__main__:where", 0), 1);
    assert_int_equal(job(c, "__main__:go", 2), 2);
    assert_int_equal(host_long(c, "where(0)"), 2);
    assert_int_equal(host_long(c, "on_thread(0)"), 2);
    assert_int_equal(pthread_create(&thread, NULL, visit, c), 0);
    pthread_join(thread, NULL);
    assert_int_equal(job(c, "__main__:where", 0), 2);
    assert_int_equal(here(), 0);
    host_close(c);
    host_close(other);
}

static void *be_main(void *arg)
{
    struct extipy_ctx *c = open_with(EXTI_CTX_ENTER_DIRECTORY, 1);

    (void)arg;
    must_be(extipy_directory(c, NULL), 0);
    must_be(host_long(c, "go(1)"), 1);
    must_be(here(), 1);
    must_be(job(c, "__main__:where", 0), 1);
    must_be(job(c, "__main__:go", 2), 2);
    must_be(host_long(c, "where(0)"), 2);
    must_be(host_long(c, "on_thread(0)"), 2);
    host_close(c);
    return NULL;
}

static void the_thread_that_is_the_main_one_has_it_for_good(void **state)
{
    struct extipy_ctx *c;
    pthread_t thread;

    begin(*state);
    assert_int_equal(pthread_create(&thread, NULL, be_main, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(here(), 0);
    /* Unless it has not said so. */
    c = open_with(0, 1);
    assert_int_equal(job(c, "__main__:go", 1), 1);
    assert_int_equal(here(), 0);
    assert_int_equal(host_long(c, "go(2)"), 2);
    assert_int_equal(here(), 2);
    assert_int_equal(job(c, "__main__:where", 0), 1);
    host_close(c);
}

#define in_folders(f) cmocka_unit_test_setup_teardown(f, remember, go_back)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folders(each_contexts_jobs_have_their_own),
        in_folders(control_contexts_that_share_move_the_process),
        in_folders(callers_share_that_of_the_context_if_it_says_so),
        in_folders(the_thread_that_is_the_main_one_has_it_for_good),
    };

    return cmocka_run_group_tests_name("python/directory", tests, NULL, NULL);
}
