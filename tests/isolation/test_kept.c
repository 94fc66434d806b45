/* What the C library keeps of copies, which may be unloaded before the process ends. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <syslog.h>
#include <wchar.h>

#include "tests/isolation/build.h"

/* The sanitizers report conversions that they do not know. */
#if defined(__SANITIZE_ADDRESS__)
#define DEFAULT_OPTIONS __asan_default_options
#elif defined(__SANITIZE_THREAD__)
#define DEFAULT_OPTIONS __tsan_default_options
#endif
#ifdef DEFAULT_OPTIONS
const char *DEFAULT_OPTIONS(void);
__attribute__((visibility("default"))) const char *DEFAULT_OPTIONS(void)
{
    return "check_printf=0";
}
#endif

static const char source[] =
    "#define _GNU_SOURCE\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <syslog.h>\n"
    "#include <unistd.h>\n"
    "#ifdef __GLIBC__\n"
    "#include <printf.h>\n"
    "#endif\n"
    "char buffers[3][1000];\n"
    "int t_buffer(FILE *f, int how, int mode)\n"
    "{\n"
    "    if (how == 0)\n"
    "        return setvbuf(f, buffers[0], mode, sizeof buffers[0]);\n"
    "    if (how == 1)\n"
    "        setbuffer(f, buffers[1], sizeof buffers[1]);\n"
    "    else\n"
    "        setbuf(f, 0);\n"
    "    return 0;\n"
    "}\n"
    "void t_log(int on_heap)\n"
    "{\n"
    "    static char name[] = \"of a copy\";\n"
    "    char *heap = on_heap ? strdup(\"on the heap\") : 0;\n"
    "    openlog(heap ? heap : name, LOG_PERROR, LOG_USER);\n"
    "    if (heap)\n"
    "        memset(heap, 'x', strlen(heap));\n"
    "    free(heap);\n"
    "}\n"
    "char text[100];\n"
    "size_t length, at;\n"
    "int closed;\n"
    "static ssize_t read_text(void *c, char *out, size_t n)\n"
    "{\n"
    "    n = n < length - at ? n : length - at;\n"
    "    memcpy(out, text + at, n);\n"
    "    at += n;\n"
    "    return n;\n"
    "}\n"
    "static ssize_t write_text(void *c, const char *bytes, size_t n)\n"
    "{\n"
    "    if (*(int *)c >= 0)\n"
    "        return write(*(int *)c, bytes, n);\n"
    "    memcpy(text + length, bytes, n);\n"
    "    length += n;\n"
    "    return n;\n"
    "}\n"
    "static int seek_text(void *c, off_t *to, int whence)\n"
    "{\n"
    "    if (whence != SEEK_SET)\n"
    "        return -1;\n"
    "    at = *to;\n"
    "    return 0;\n"
    "}\n"
    "static int close_text(void *c) { closed++; return 7; }\n"
    "int to = -1;\n"
    "FILE *t_stream(int fd)\n"
    "{\n"
    "    const cookie_io_functions_t io = {read_text, write_text, seek_text, close_text};\n"
    "    to = fd;\n"
    "    return fopencookie(&to, \"r+\", io);\n"
    "}\n"
    "FILE *at_end;\n"
    "__attribute__((destructor)) static void end(void)\n"
    "{\n"
    "    if (!at_end)\n"
    "        return;\n"
    "    fputs(\"the end\", at_end);\n"
    "    fclose(at_end);\n"
    "}\n"
    "static ssize_t write_nested(void *c, const char *bytes, size_t n)\n"
    "{\n"
    "    const cookie_io_functions_t io = {read_text, write_text, seek_text, close_text};\n"
    "    usleep(300000);\n"
    "    fclose(fopencookie(&to, \"r\", io));\n"
    "    return n;\n"
    "}\n"
    "FILE *t_nested(void)\n"
    "{\n"
    "    const cookie_io_functions_t io = {0, write_nested};\n"
    "    return fopencookie(0, \"w\", io);\n"
    "}\n"
    "FILE *t_blank(void) { const cookie_io_functions_t io = {0}; return fopencookie(0, \"r+\", "
    "io); }\n"
    "int delay, printing;\n"
    "static int print(FILE *f, const struct printf_info *i, const void *const *a)\n"
    "{\n"
    "    printing = 1;\n"
    "    if (delay)\n"
    "        usleep(delay);\n"
    "    return fprintf(f, \"<%d %d>\", **(int *const *)a, NUMBER);\n"
    "}\n"
    "static int arguments(const struct printf_info *i, size_t n, int *types, int *sizes)\n"
    "{\n"
    "    if (n)\n"
    "        types[0] = PA_INT;\n"
    "    return 1;\n"
    "}\n"
    "int t_convert(int c) { return register_printf_specifier(c, print, arguments); }\n"
    "int t_convert_no_more(int c) { return register_printf_specifier(c, 0, 0); }\n"
    "int t_modify(const wchar_t *m) { return register_printf_modifier(m); }\n";

struct keeper {
    struct exti_ctx *ctx;
    struct exti_module *m;
    int (*buffer)(FILE *, int, int);
    void (*log)(int);
    FILE *(*stream)(int);
    FILE *(*blank)(void);
    FILE *(*nested)(void);
    int (*convert)(int), (*convert_no_more)(int), (*modify)(const wchar_t *);
    int *closed, *delay;
    volatile int *printing;
    FILE **at_end;
};

/* Their conversions print the number, too. */
static struct keeper open_keeper(int number)
{
    struct keeper k = {0};
    char name[32], flags[32];

    snprintf(name, sizeof name, "keep%d.so", number);
    snprintf(flags, sizeof flags, "-w -DNUMBER=%d", number);
    if (!file_exists(in_tmp(name)))
        iso_build(source, name, flags);
    k.ctx = iso_open(NULL);
    k.m = iso_load(k.ctx, in_tmp(name));
    *(void **)&k.buffer = iso_sym(k.m, "t_buffer");
    *(void **)&k.log = iso_sym(k.m, "t_log");
    *(void **)&k.stream = iso_sym(k.m, "t_stream");
    *(void **)&k.blank = iso_sym(k.m, "t_blank");
    *(void **)&k.nested = iso_sym(k.m, "t_nested");
    *(void **)&k.convert = iso_sym(k.m, "t_convert");
    *(void **)&k.convert_no_more = iso_sym(k.m, "t_convert_no_more");
    *(void **)&k.modify = iso_sym(k.m, "t_modify");
    k.closed = iso_sym(k.m, "closed");
    k.delay = iso_sym(k.m, "delay");
    k.printing = iso_sym(k.m, "printing");
    k.at_end = iso_sym(k.m, "at_end");
    return k;
}

static void want_string(const char *text, const char *expected)
{
    want_text(text, expected);
    want_int((long)strlen(text), (long)strlen(expected));
}

/* What the file has. */
static const char *content(const char *name)
{
    static char text[1000];
    FILE *f = fopen(in_tmp(name), "r");

    want(f != NULL);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static void buffer(int how, const char *at_once)
{
    struct keeper k = open_keeper(1);
    FILE *f = fopen(in_tmp("out"), "w");

    want_int(k.buffer(f, how, _IOFBF), 0);
    fputs("one ", f);
    want_string(content("out"), at_once);
    iso_close_ctx(k.ctx);
    fputs("two", f);
    want_int(fclose(f), 0);
    want_string(content("out"), "one two");
}

ISO_CASE(streams_do_not_use_buffers_of_copies)
{
    buffer(0, "");
    buffer(1, "");
    buffer(2, "one ");
}

ISO_CASE(a_stream_without_a_buffer_gets_one)
{
    struct keeper k = open_keeper(1);
    FILE *f = fopen(in_tmp("out"), "w");

    want_int(setvbuf(f, NULL, _IONBF, 0), 0);
    want_int(k.buffer(f, 0, _IOFBF), 0);
    fputs("text", f);
    want_string(content("out"), "");
    want_int(k.buffer(f, 0, _IOFBF), 0); /* which writes what there is */
    want_string(content("out"), "text");
    iso_close_ctx(k.ctx);
    want_int(fclose(f), 0);
}

ISO_CASE(the_log_keeps_no_names_of_copies)
{
    struct keeper k = open_keeper(1);
    const int before = dup(2);

    want(freopen(in_tmp("log"), "w", stderr) != NULL);
    k.log(1);
    syslog(LOG_INFO, "first");
    k.log(0);
    k.log(0);
    iso_close_ctx(k.ctx);
    syslog(LOG_INFO, "second");
    closelog();
    fflush(stderr);
    dup2(before, 2);
    want_text(content("log"), "on the heap: first");
    want_text(content("log"), "of a copy: second");
}

ISO_CASE(streams_of_copies_work)
{
    struct keeper k = open_keeper(1);
    FILE *f = k.stream(-1), *blank = k.blank();
    char text[16];

    want(f && blank);
    want(fputs("hello", f) >= 0);
    rewind(f);
    want(fgets(text, sizeof text, f) != NULL);
    want_string(text, "hello");
    want_int(fseek(f, 1, SEEK_END), -1);
    want_int(*k.closed, 0);
    want(fclose(f) != 0); /* the function says that it has failed */
    want_int(*k.closed, 1);
    want_int(fgetc(blank), EOF);
    want(fseek(blank, 0, SEEK_SET) != 0);
    want_int(fclose(blank), 0);
    iso_close_ctx(k.ctx);
}

ISO_CASE(a_stream_whose_copy_is_gone_is_at_its_end)
{
    struct keeper k = open_keeper(1);
    char text[16] = "";
    int ends[2];
    FILE *f;

    want_int(pipe2(ends, O_NONBLOCK), 0);
    f = k.stream(ends[1]);
    want(fputs("late", f) >= 0);
    iso_close_ctx(k.ctx);
    want_int(read(ends[0], text, sizeof text), 4);
    want_string(text, "late");
    want_int(fgetc(f), EOF);
    want(feof(f));
    want(fseek(f, 0, SEEK_SET) != 0);
    want(fputs("lost", f) >= 0);
    errno = 0;
    want_int(fflush(f), EOF);
    want_int(errno, EBADF);
    fclose(f);
    close(ends[1]);
    want_int(read(ends[0], text, sizeof text), 0);
}

ISO_CASE(destructors_use_their_streams)
{
    struct keeper k = open_keeper(1);
    char text[16] = "";
    int ends[2];

    want_int(pipe2(ends, O_NONBLOCK), 0);
    *k.at_end = k.stream(ends[1]);
    want(fputs("before ", *k.at_end) >= 0);
    iso_close_ctx(k.ctx);
    want_int(read(ends[0], text, sizeof text), 14);
    want_string(text, "before the end");
}

/* Nobody reads what the program has to say. */
ISO_CASE(closing_does_not_wait_for_the_programs_streams)
{
    struct keeper k = open_keeper(1);
    char text[4096] = "";
    int ends[2];
    FILE *f;

    want(k.stream(-1) != NULL);
    want_int(pipe2(ends, O_NONBLOCK), 0);
    while (write(ends[1], text, sizeof text) > 0)
        ;
    want_int(fcntl(ends[1], F_SETFL, 0), 0);
    f = fdopen(ends[1], "w");
    want(fputs("text", f) >= 0);
    iso_close_ctx(k.ctx);
    _exit(0);
}

#ifndef __SANITIZE_THREAD__ /* which holds locks of its own while a process forks */
static void *flush_all(void *unused)
{
    (void)unused;
    fflush(NULL);
    return NULL;
}

ISO_CASE(forks_and_flushes_do_not_wait_for_each_other)
{
    struct keeper k = open_keeper(1);
    pthread_t thread;
    pid_t pid;

    want(fputs("text", k.nested()) >= 0);
    want_int(pthread_create(&thread, NULL, flush_all, NULL), 0);
    usleep(100000);
    pid = fork();
    if (pid == 0)
        _exit(0);
    want_int(waitpid(pid, NULL, 0), pid);
    want_int(pthread_join(thread, NULL), 0);
    iso_close_ctx(k.ctx);
}
#endif

/* What printf makes of the number; compilers do not know its conversions. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static const char *printed(const char *format, ...)
{
    static _Thread_local char text[64];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return text;
}
#pragma GCC diagnostic pop

ISO_CASE(printf_calls_no_function_of_a_copy_that_is_gone)
{
    struct keeper a = open_keeper(1), b = open_keeper(2);

    want_string(printed("%W", 5), "%W");
    want_int(a.convert('W'), 0);
    want_string(printed("%W", 5), "<5 1>");
    want_int(b.convert('W'), 0);
    want_int(b.convert('Y'), 0);
    want_string(printed("%W", 5), "<5 2>");
    want_int(a.convert_no_more('W'), 0);
    want_string(printed("%W", 5), "<5 2>");
    want_int(a.convert('W'), 0);
    want_string(printed("%W", 5), "<5 1>");
    iso_close_ctx(a.ctx);
    want_string(printed("%W", 5), "<5 2>");
    want_int(b.convert(1000), -1);
    want_int(b.convert_no_more('Y'), 0);
    want_string(printed("%Y", 5), "%Y");
    iso_close_ctx(b.ctx);
    want_string(printed("%W", 5), "%W");
}

static void *print_slowly(void *text)
{
    snprintf(text, 64, "%s", printed("%W", 5));
    return NULL;
}

ISO_CASE(closing_waits_for_threads_in_a_conversion)
{
    struct keeper k = open_keeper(1);
    pthread_t thread;
    char text[64];

    want_int(k.convert('W'), 0);
    *k.delay = 200000;
    want_int(pthread_create(&thread, NULL, print_slowly, text), 0);
    while (!*k.printing)
        usleep(1000);
    iso_close_ctx(k.ctx);
    want_int(pthread_join(thread, NULL), 0);
    want_string(text, "<5 1>");
}

static atomic_bool no_more;

static void *print_on(void *unused)
{
    (void)unused;
    while (!no_more) {
        const char *text = printed("%W", 5);

        want(strcmp(text, "%W") == 0 || strcmp(text, "<5 1>") == 0);
    }
    return NULL;
}

ISO_CASE(threads_print_while_contexts_come_and_go)
{
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        want_int(pthread_create(&threads[i], NULL, print_on, NULL), 0);
    for (int i = 0; i < 50; i++) {
        struct keeper k = open_keeper(1);

        want_int(k.convert('W'), 0);
        usleep(1000);
        iso_close_ctx(k.ctx);
    }
    no_more = true;
    for (int i = 0; i < 2; i++)
        want_int(pthread_join(threads[i], NULL), 0);
}

/* The C library has 16. */
ISO_CASE(contexts_have_modifiers_of_printf_in_common)
{
    struct keeper a = open_keeper(1), b = open_keeper(2);
    const int bit = a.modify(L"Q");

    want(bit > 0);
    for (int i = 0; i < 20; i++)
        want_int(b.modify(L"Q"), bit);
    want(b.modify(L"QQ") > 0);
    want(b.modify(L"QQ") != bit);
    want_int(a.modify(L""), -1);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_do_not_use_buffers_of_copies),
        cmocka_unit_test(a_stream_without_a_buffer_gets_one),
        cmocka_unit_test(the_log_keeps_no_names_of_copies),
        cmocka_unit_test(streams_of_copies_work),
        cmocka_unit_test(a_stream_whose_copy_is_gone_is_at_its_end),
        cmocka_unit_test(destructors_use_their_streams),
        cmocka_unit_test(closing_does_not_wait_for_the_programs_streams),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(forks_and_flushes_do_not_wait_for_each_other),
#endif
        cmocka_unit_test(printf_calls_no_function_of_a_copy_that_is_gone),
        cmocka_unit_test(closing_waits_for_threads_in_a_conversion),
        cmocka_unit_test(threads_print_while_contexts_come_and_go),
        cmocka_unit_test(contexts_have_modifiers_of_printf_in_common),
    };

    return cmocka_run_group_tests_name("kept", tests, NULL, NULL);
}
