/* What contexts print reaches the program line by line. */
#include "tests/python/support/host.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a callback was given, each piece in brackets with the stream's number. */
struct said {
    pthread_mutex_t lock;
    char text[1 << 20];
    size_t length;
    int pieces;
};

static struct said *said;

static void hear(void *user, enum extipy_stream stream, const char *text, size_t length)
{
    struct said *s = user;

    pthread_mutex_lock(&s->lock);
    host_must(s->length + length + 8 < sizeof s->text ? 0 : EXTI_E_NOSPACE);
    s->length += (size_t)sprintf(s->text + s->length, "%d[%.*s]", stream, (int)length, text);
    s->pieces++;
    pthread_mutex_unlock(&s->lock);
}

static int make_said(void **state)
{
    said = calloc(1, sizeof *said);
    pthread_mutex_init(&said->lock, NULL);
    return said ? test_setup(state) : -1;
}

static int free_said(void **state)
{
    free(said);
    return test_teardown(state);
}

#define with_ear(f) cmocka_unit_test_setup_teardown(f, make_said, free_said)

static struct extipy_ctx *open_with(const struct extipy_opts *opts)
{
    struct exti_error err = {0};
    struct extipy_ctx *c = NULL;

    assert_ok(extipy_open(&c, host_python(), opts, &err), &err);
    return c;
}

static struct extipy_ctx *open_heard(void)
{
    struct extipy_opts opts = {.size = sizeof opts, .output = hear, .output_user = said};

    return open_with(&opts);
}

static void lines_and_flushes_are_pieces(void **state)
{
    struct extipy_ctx *c = open_heard();

    (void)state;
    host_run(c, "import sys\n"
                "print('one', 'line')\n"
                "print('two\\nthree')\n"
                "print('no end', end='')\n"
                "print('error', file=sys.stderr)\n"
                "print(' yet', end='', flush=True)\n"
                "sys.stdout.flush()\n"
                "sys.__stdout__.write('last\\r\\n\\n')\n");
    assert_string_equal(said->text, "1[one line\n]1[two\n]1[three\n]2[error\n]1[no end yet]"
                                    "1[last\r\n]1[\n]");
    host_close(c);
    assert_int_equal(said->pieces, 7);
}

static void the_end_delivers_what_was_begun(void **state)
{
    struct extipy_ctx *c = open_heard();

    (void)state;
    host_run(c, "import atexit, sys, threading\n"
                "t = threading.Thread(target=print, args=('of a thread',), kwargs={'end': ''})\n"
                "t.start(); t.join()\n"
                "sys.stderr.write('begun')\n"
                "atexit.register(print, 'at the end', end='')\n");
    assert_int_equal(said->pieces, 0);
    host_close(c);
    /* Finalisation flushes what its own thread has begun. */
    assert_string_equal(said->text, "1[at the end]1[of a thread]2[begun]");
}

static void text_is_utf8_and_bytes_are_bytes(void **state)
{
    struct extipy_ctx *c = open_heard();

    (void)state;
    host_run(c, "import sys\n"
                "print('\\u00e9\\U0001F40D\\udcff')\n"
                "sys.stdout.buffer.write(bytearray(b'\\xff\\n'))\n");
    assert_string_equal(said->text, "1[\xc3\xa9\xf0\x9f\x90\x8d\\udcff\n]1[\xff\n]");
    host_close(c);
}

static void streams_are_as_programs_know_them(void **state)
{
    struct extipy_ctx *c = open_heard();

    (void)state;
    host_run(c, "import io, sys\n"
                "for name in 'stdout', 'stderr':\n"
                "    s = getattr(sys, name)\n"
                "    assert isinstance(s, io.TextIOWrapper) and s is getattr(sys, f'__{name}__')\n"
                "    assert s.encoding == 'utf-8' and s.name == f'<{name}>' and s.mode == 'w'\n"
                "    assert s.writable() and not s.readable() and not s.seekable()\n"
                "    assert not s.isatty()\n"
                "    try: s.fileno()\n"
                "    except io.UnsupportedOperation: pass\n"
                "    else: raise AssertionError\n"
                "s.reconfigure(line_buffering=True)\n"
                "own = sys.stdout.detach()\n"
                "assert own.write(b'detached\\n') == 9\n"
                "own.close()\n"
                "for f in (lambda: own.write(b'closed')), own.flush:\n"
                "    try: f()\n"
                "    except ValueError: pass\n"
                "    else: raise AssertionError\n"
                "try: own._below.write('text')\n"
                "except TypeError: pass\n"
                "else: raise AssertionError\n");
    assert_string_equal(said->text, "1[detached\n]");
    host_close(c);
}

static void tracebacks_and_warnings_are_heard(void **state)
{
    struct extipy_ctx *c = open_heard();

    (void)state;
    host_run(c, "import warnings, threading\n"
                "warnings.warn('careful')\n"
                "t = threading.Thread(target=lambda: 1 / 0)\n"
                "t.start(); t.join()\n");
    assert_non_null(strstr(said->text, "UserWarning: careful\n]"));
    assert_non_null(strstr(said->text, "2[ZeroDivisionError: division by zero\n]"));
    assert_null(strstr(said->text, "1["));
    host_close(c);
}

/* ---- threads ---- */

/* How many pieces there are, each a line of one writer's, "<name:123xxx>"; -1: another. */
static int count_whole(const char *text)
{
    char name[32];
    int n, at, count = 0;

    for (; *text; text += at, count++) {
        at = 0;
        if (sscanf(text, "1[<%31[^:]:%d", name, &n) != 2)
            return -1;
        text = strchr(text, 'x');
        at = text ? (int)strspn(text, "x") : 0;
        if (at != 100 || strncmp(text + at, ">\n]", 3) != 0)
            return -1;
        at += 3;
    }
    return count;
}

/* print writes the four arguments and the newline each by itself. */
static const char print_much[] = "import sys, threading\n"
                                 "sys.setswitchinterval(1e-6)\n"
                                 "def work(name):\n"
                                 "    for i in range(300):\n"
                                 "        print('<', name, ':%d' % i, 'x' * 100 + '>', sep='')\n"
                                 "threads = [threading.Thread(target=work, args=('t%d' % i,))\n"
                                 "           for i in range(4)]\n"
                                 "for t in threads: t.start()\n"
                                 "work('main')\n"
                                 "for t in threads: t.join()\n";

static void *run_it(void *arg)
{
    host_must(extipy_enter(arg, NULL));
    host_must(host_run_inside(arg, print_much));
    host_must(extipy_leave(arg, NULL));
    return NULL;
}

static void lines_of_threads_and_contexts_are_whole(void **state)
{
    struct extipy_ctx *c[2] = {open_heard(), open_heard()};
    pthread_t t[2];

    (void)state;
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&t[i], NULL, run_it, c[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(count_whole(said->text), 2 * 5 * 300);
    host_close(c[0]);
    host_close(c[1]);
}

/* The system gives the ids of threads that have ended to new ones. */
static void a_thread_that_ended_leaves_its_line_to_nobody(void **state)
{
    struct extipy_ctx *c = open_heard();

    (void)state;
    host_run(c, "import threading\n"
                "for args in ('begun', ''), ('whole', '\\n'):\n"
                "    t = threading.Thread(target=lambda: print(args[0], end=args[1]))\n"
                "    t.start(); t.join()\n");
    assert_string_equal(said->text, "1[whole\n]");
    host_close(c);
    assert_string_equal(said->text, "1[whole\n]1[begun]");
}

static struct extipy_ctx *calling;
static atomic_int depth;
static int codes[2];

/* Calls back into the context that prints. */
static void call_back(void *user, enum extipy_stream stream, const char *text, size_t length)
{
    hear(user, stream, text, length);
    if (depth++ == 0) {
        codes[0] = extipy_close(calling, NULL, NULL, NULL, NULL);
        codes[1] = extipy_detach(calling, NULL);
        host_must(extipy_exec(calling, "print('inner'); print('begun', end='')", NULL, NULL));
    }
}

static void a_callback_may_call_its_context(void **state)
{
    struct extipy_opts opts = {.size = sizeof opts, .output = call_back, .output_user = said};

    (void)state;
    depth = 0;
    calling = open_with(&opts);
    host_run(calling, "import threading\n"
                      "print('outer\\nand', end=' ')\n"
                      "print('more')\n");
    assert_int_equal(codes[0], EXTIPY_E_PLACE);
    assert_int_equal(codes[1], EXTIPY_E_PLACE);
    /* On a thread of Python's. */
    depth = 0;
    host_run(calling, "t = threading.Thread(target=print, args=('outer',))\n"
                      "t.start(); t.join()\n");
    assert_int_equal(codes[0], EXTIPY_E_PLACE);
    assert_int_equal(codes[1], EXTIPY_E_PLACE);
    host_close(calling);
    assert_string_equal(said->text, "1[outer\n]1[inner\n]1[and more\n]1[outer\n]1[inner\n]"
                                    "1[begun]1[begun]");
}

static sem_t in_callback, go_on;

static void wait_in_callback(void *user, enum extipy_stream stream, const char *text, size_t length)
{
    if (strncmp(text, "wait", 4) == 0) {
        sem_post(&in_callback);
        while (sem_wait(&go_on) != 0)
            continue;
    }
    hear(user, stream, text, length);
}

static void *print_wait(void *arg)
{
    host_must(extipy_exec(arg, "print('wait')", NULL, NULL));
    return NULL;
}

static void a_callback_has_no_gil(void **state)
{
    struct extipy_opts opts = {
        .size = sizeof opts, .output = wait_in_callback, .output_user = said};
    struct extipy_ctx *c;
    pthread_t t;

    (void)state;
    sem_init(&in_callback, 0, 0);
    sem_init(&go_on, 0, 0);
    c = open_with(&opts);
    assert_int_equal(pthread_create(&t, NULL, print_wait, c), 0);
    while (sem_wait(&in_callback) != 0)
        continue;
    host_run(c, "print('beside')");
    sem_post(&go_on);
    pthread_join(t, NULL);
    host_close(c);
    assert_string_equal(said->text, "1[beside\n]1[wait\n]");
}

static void *go_on_later(void *arg)
{
    struct extipy_call call = {.size = sizeof call, .function = "builtins:int"};

    while (extipy_submit(NULL, arg, &call, NULL, NULL) == 0)
        usleep(1000);
    usleep(10000);
    sem_post(&go_on);
    return NULL;
}

/* A daemon is in the callback when the context is closed, which has a buffer and so does not
 * finalise. */
static void closing_waits_for_callbacks_and_then_it_is_silent(void **state)
{
    struct extipy_opts opts = {
        .size = sizeof opts, .output = wait_in_callback, .output_user = said};
    struct extipy_call call = {.size = sizeof call, .function = "builtins:bytearray", .stay = 1};
    struct extipy_closed closed = {.size = sizeof closed};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *result;
    struct extipy_buffer *buffer;
    struct extipy_ctx *c;
    struct test *t = *state;
    pthread_t helper;

    sem_init(&in_callback, 0, 0);
    sem_init(&go_on, 0, 0);
    c = open_with(&opts);
    assert_ok(extipy_call(c, &call, &result, NULL, &t->err), &t->err);
    assert_int_equal(extipy_value(result, 1, &value), 0);
    assert_ok(extipy_buffer_of(&buffer, value.object, 0, NULL, &t->err), &t->err);
    extipy_values_free(result);
    host_run(c, "import threading\n"
                "class Late:\n"
                "    def __del__(self): print('later')\n"
                "late = Late()\n"
                "t = threading.Thread(target=print, args=('wait',), daemon=True)\n"
                "t.start()\n");
    while (sem_wait(&in_callback) != 0)
        continue;
    assert_int_equal(pthread_create(&helper, NULL, go_on_later, c), 0);
    assert_ok(extipy_close(c, NULL, NULL, &closed, &t->err), &t->err);
    assert_int_equal(closed.buffers, 1);
    assert_string_equal(said->text, "1[wait\n]");
    pthread_join(helper, NULL);
    extipy_buffer_release(buffer);
    while (extipy_lingering())
        usleep(1000);
    assert_string_equal(said->text, "1[wait\n]");
}

/* ---- descriptors ---- */

static void descriptors_get_lines(void **state)
{
    struct extipy_opts opts = {.size = sizeof opts, .output = hear, .output_user = said};
    struct test *t = *state;
    char *path = test_path(t, "out");
    struct extipy_ctx *c;

    opts.stdout_fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(opts.stdout_fd > 0);
    c = open_with(&opts);
    host_run(c, test_format(t,
                            "import os, sys\n"
                            "print('one')\n"
                            "print('begun', end='')\n"
                            "assert os.path.getsize('%s') == 4\n"
                            "assert sys.stdout.fileno() == %d and not sys.stdout.isatty()\n"
                            "print('error', file=sys.stderr)\n",
                            path, opts.stdout_fd));
    host_close(c);
    assert_string_equal(test_read(t, path, NULL), "one\nbegun");
    assert_string_equal(said->text, "2[error\n]");
    assert_int_equal(close(opts.stdout_fd), 0);
}

static void *count_pipe(void *arg)
{
    FILE *f = fdopen(*(int *)arg, "r");
    size_t room = 0, longest = 0, length;
    char *line = NULL;
    ssize_t n;
    long count = 0;

    host_must(f ? 0 : EXTI_E_IO);
    while ((n = getline(&line, &room, f)) > 0) {
        length = (size_t)n;
        /* One writer's letter alone. */
        host_must(strspn(line, (char[]){line[0], '\0'}) == length - 1 ? 0 : EXTI_E_FORMAT);
        longest = length > longest ? length : longest;
        count++;
    }
    host_must(longest == 200001 ? 0 : EXTI_E_FORMAT);
    fclose(f);
    free(line);
    return (void *)count;
}

struct writer {
    struct extipy_ctx *ctx;
    const char *source;
};

static void *write_much(void *arg)
{
    struct writer *w = arg;

    host_must(extipy_exec(w->ctx, w->source, NULL, NULL));
    return NULL;
}

/* Lines longer than a pipe takes at once, with and without waiting for its reader. */
static void long_lines_of_contexts_stay_whole_in_a_pipe(void **state)
{
    static const char *const sources[2] = {"for i in range(200): print('a' * (i * 1000 + 1000))",
                                           "for i in range(200): print('b' * (i * 1000 + 1000))"};
    struct extipy_opts opts = {.size = sizeof opts};
    struct writer w[2];
    pthread_t reader, t[2];
    void *count;
    int fd[2];

    (void)state;
    for (int mode = 0; mode < 2; mode++) {
        assert_int_equal(pipe(fd), 0);
        if (mode)
            fcntl(fd[1], F_SETFL, O_NONBLOCK);
        opts.stdout_fd = opts.stderr_fd = fd[1];
        for (int i = 0; i < 2; i++)
            w[i] = (struct writer){open_with(&opts), sources[i]};
        assert_int_equal(pthread_create(&reader, NULL, count_pipe, &fd[0]), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(pthread_create(&t[i], NULL, write_much, &w[i]), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(t[i], NULL);
        for (int i = 0; i < 2; i++)
            host_close(w[i].ctx);
        close(fd[1]);
        pthread_join(reader, &count);
        assert_int_equal((long)count, 400);
    }
}

static void a_write_that_fails_is_an_oserror(void **state)
{
    struct extipy_opts opts = {.size = sizeof opts};
    struct extipy_ctx *c;

    (void)state;
    opts.stdout_fd = opts.stderr_fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(opts.stdout_fd > 0);
    c = open_with(&opts);
    host_run(c, "import errno\n"
                "x = []\n"
                "def check(f):\n"
                "    try: f()\n"
                "    except OSError as e: x.append(e.errno == errno.ENOSPC)\n"
                "check(lambda: print('lost'))\n"
                "check(lambda: print('lost', end='', flush=True))\n"
                "print('lost', end='')\n"
                "check(print)\n");
    assert_int_equal(host_long(c, "sum(x)"), 3);
    host_close(c);
    close(opts.stdout_fd);
}

static void no_option_changes_nothing(void **state)
{
    struct extipy_opts opts = {.size = sizeof opts};
    struct extipy_ctx *c = open_with(&opts);
    struct test *t = *state;

    host_run(c, "import sys; assert sys.stdout.fileno() == 1 and sys.stderr.fileno() == 2");
    host_close(c);
    opts.stderr_fd = -1;
    assert_int_equal(extipy_open(&c, host_python(), &opts, &t->err), EXTI_E_ARG);
    assert_says(&t->err, "stderr_fd");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_ear(lines_and_flushes_are_pieces),
        with_ear(the_end_delivers_what_was_begun),
        with_ear(text_is_utf8_and_bytes_are_bytes),
        with_ear(streams_are_as_programs_know_them),
        with_ear(tracebacks_and_warnings_are_heard),
        with_ear(lines_of_threads_and_contexts_are_whole),
        with_ear(a_thread_that_ended_leaves_its_line_to_nobody),
        with_ear(a_callback_may_call_its_context),
        with_ear(a_callback_has_no_gil),
        with_ear(closing_waits_for_callbacks_and_then_it_is_silent),
        with_ear(descriptors_get_lines),
        exti_test(long_lines_of_contexts_stay_whole_in_a_pipe),
        exti_test(a_write_that_fails_is_an_oserror),
        exti_test(no_option_changes_nothing),
    };

    return cmocka_run_group_tests_name("python/output", tests, NULL, NULL);
}
