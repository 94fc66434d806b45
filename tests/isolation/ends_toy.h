/* A library that ends contexts, as programs end processes, and threads that call it. */
#ifndef TESTS_ISOLATION_ENDS_TOY_H
#define TESTS_ISOLATION_ENDS_TOY_H

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "tests/isolation/build.h"

static const char ends_source[] =
    "#define _GNU_SOURCE\n"
    "#include <assert.h>\n"
    "#include <errno.h>\n"
    "#include <pthread.h>\n"
    "#include <signal.h>\n"
    "#include <stdlib.h>\n"
    "#include <string.h>\n"
    "#include <sys/time.h>\n"
    "#include <sys/wait.h>\n"
    "#include <unistd.h>\n"
    "extern char **environ;\n"
    "int out = 2, in = -1;\n"
    "volatile int ticks;\n"
    "static void put(const char *text) { if (write(out, text, strlen(text)) < 0) abort(); }\n"
    "static void a(void) { put(\"a\"); }\n"
    "static void c(void) { put(\"c\"); }\n"
    "static void b(void) { put(\"b\"); atexit(c); }\n"
    "static void again(void) { put(\"again\"); exit(9); }\n"
    "static void at_once(void) { put(\"once\"); _exit(8); }\n"
    "static void on(int status, void *arg)\n"
    "{ char text[2] = {'0' + status, 0}; put(text); put(arg); }\n"
    "static void quick(void) { put(\"q\"); }\n"
    "static void await(void) { char c; if (read(in, &c, 1) != 1) abort(); }\n"
    "static void slow(void) { put(\"s\"); await(); put(\"S\"); }\n"
    "void t_register(int what)\n"
    "{\n"
    "    void (*const f[])(void) = {a, b, again, at_once, 0, 0, slow};\n"
    "    if (what == 4) on_exit(on, \"on\");\n"
    "    else if (what == 5) at_quick_exit(quick);\n"
    "    else atexit(f[what]);\n"
    "}\n"
    "void t_end(int way, int status)\n"
    "{\n"
    "    if (way == 0) exit(status);\n"
    "    if (way == 1) _exit(status);\n"
    "    if (way == 2) _Exit(status);\n"
    "    quick_exit(status);\n"
    "}\n"
    "void t_end_later(int way, int status) { put(\"l\"); await(); t_end(way, status); }\n"
    "static int way_of, status_of;\n"
    "static void *end_thread(void *arg) { t_end(way_of, status_of); return arg; }\n"
    "void t_end_on_thread(int way, int status)\n"
    "{\n"
    "    pthread_t t;\n"
    "    way_of = way; status_of = status;\n"
    "    if (pthread_create(&t, 0, end_thread, 0)) abort();\n"
    "    pthread_join(t, 0);\n"
    "}\n"
    "int t_fork(int way, int status)\n"
    "{\n"
    "    int ended;\n"
    "    pid_t pid = way < 4 ? fork() : vfork();\n"
    "    if (!pid && way < 4) t_end(way, status);\n"
    "    if (!pid) _exit(status);\n"
    "    return waitpid(pid, &ended, 0) == pid ? ended : -1;\n"
    "}\n"
    "int t_spawn(int way, const char *file)\n"
    "{\n"
    "    int ended;\n"
    "    char *words[] = {\"x\", 0};\n"
    "    pid_t pid = way ? vfork() : fork();\n"
    "    if (!pid) { execv(file, words); _exit(99); }\n"
    "    return waitpid(pid, &ended, 0) == pid ? ended : -1;\n"
    "}\n"
    "int t_fork_and_call(int (*f)(void))\n"
    "{\n"
    "    int ended;\n"
    "    pid_t pid = fork();\n"
    "    if (!pid) _exit(f());\n"
    "    return waitpid(pid, &ended, 0) == pid ? ended : -1;\n"
    "}\n"
    "static void handler(int sig) { (void)sig; _exit(6); }\n"
    "static void tick(int sig) { (void)sig; ticks++; }\n"
    "int t_handle(int sig) { return signal(sig, handler) == SIG_ERR; }\n"
    "int t_ignore(int sig) { return signal(sig, SIG_IGN) == SIG_ERR; }\n"
    "int t_raise(int sig) { return raise(sig); }\n"
    "int t_count(int sig) { return signal(sig, tick) == SIG_ERR; }\n"
    "void t_block(int sig, int how)\n"
    "{\n"
    "    sigset_t one;\n"
    "    sigemptyset(&one);\n"
    "    sigaddset(&one, sig);\n"
    "    pthread_sigmask(how, &one, 0);\n"
    "}\n"
    "void t_alarm_and_exec(const char *file) { alarm(1); execl(file, file, \"600\", (char *)0); }\n"
    "static void drop_key(void *text) { put(text); }\n"
    "extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);\n"
    "extern void *__dso_handle;\n"
    "void t_own(void)\n"
    "{\n"
    "    pthread_key_t key;\n"
    "    pthread_key_create(&key, drop_key);\n"
    "    pthread_setspecific(key, \"k\");\n"
    "    __cxa_thread_atexit_impl(drop_key, \"t\", &__dso_handle);\n"
    "}\n"
    "void t_timer(void)\n"
    "{\n"
    "    struct itimerval t = {{0, 1000}, {0, 1000}};\n"
    "    signal(SIGALRM, tick);\n"
    "    setitimer(ITIMER_REAL, &t, 0);\n"
    "}\n"
    "void t_abort(int way) { if (way) assert(!way); abort(); }\n"
    "int t_exec(int way, const char *file, const char *code)\n"
    "{\n"
    "    char *words[] = {\"sh\", \"-c\", (char *)code, \"x\", \"y\", 0};\n"
    "    char *other[] = {\"NAME=other\", 0};\n"
    "    setenv(\"NAME\", \"own\", 1);\n"
    "    if (way == 0) execv(file, words);\n"
    "    if (way == 1) execve(file, words, environ);\n"
    "    if (way == 2) execvp(file, words);\n"
    "    if (way == 3) execvpe(file, words, other);\n"
    "    if (way == 4) execl(file, \"sh\", \"-c\", code, \"x\", \"y\", (char *)0);\n"
    "    if (way == 5) execlp(file, \"sh\", \"-c\", code, \"x\", \"y\", (char *)0);\n"
    "    if (way == 6) execle(file, \"sh\", \"-c\", code, \"x\", \"y\", (char *)0, other);\n"
    "    return -errno;\n"
    "}\n"
    "int t_daemon(void) { return daemon(1, 1); }\n"
    "int t_pid(void) { return getpid(); }\n";

struct program {
    struct exti_ctx *ctx;
    struct exti_module *module;
    int *out, *in;
    volatile int *ticks;
    void (*register_handler)(int), (*end)(int, int), (*end_on_thread)(int, int);
    void (*timer)(void), (*abort)(int);
    int (*fork)(int, int), (*spawn)(int, const char *), (*handle)(int), (*ignore)(int);
    int (*raise)(int), (*exec)(int, const char *, const char *), (*daemon)(void);
    int (*fork_and_call)(int (*)(void)), (*count)(int);
    void (*end_later)(int, int), (*block)(int, int), (*alarm_and_exec)(const char *), (*own)(void);

    sem_t over;
    atomic_int may, where, status, ends, aborted; /* what the hooks say and heard */
    sigjmp_buf *back;
};

/* ---- the hooks ---- */

static inline int may_exit(void *user, struct exti_ctx *ctx, uint32_t where)
{
    struct program *p = user;

    want(!p->ctx || ctx == p->ctx);
    p->where = (int)where;
    return p->may;
}

static inline void note_exit(void *user, struct exti_ctx *ctx, int status)
{
    struct program *p = user;

    want(ctx == p->ctx);
    p->status = status;
    p->ends++;
    sem_post(&p->over);
    if (p->back)
        siglongjmp(*p->back, 1);
}

static inline void note_abort(void *user, struct exti_ctx *ctx)
{
    struct program *p = user;

    want(ctx == p->ctx);
    if (write(*p->out, "abort", 5) != 5)
        _exit(9);
}

/* ---- opening ---- */

static inline void find_symbols(struct program *p)
{
    const struct {
        void *slot;
        const char *name;
    } symbols[] = {
        {&p->out, "out"},         {&p->in, "in"},
        {&p->ticks, "ticks"},     {&p->register_handler, "t_register"},
        {&p->end, "t_end"},       {&p->end_on_thread, "t_end_on_thread"},
        {&p->timer, "t_timer"},   {&p->abort, "t_abort"},
        {&p->fork, "t_fork"},     {&p->spawn, "t_spawn"},
        {&p->handle, "t_handle"}, {&p->ignore, "t_ignore"},
        {&p->raise, "t_raise"},   {&p->exec, "t_exec"},
        {&p->daemon, "t_daemon"}, {&p->fork_and_call, "t_fork_and_call"},
        {&p->count, "t_count"},   {&p->end_later, "t_end_later"},
        {&p->block, "t_block"},   {&p->alarm_and_exec, "t_alarm_and_exec"},
        {&p->own, "t_own"},
    };

    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *at = iso_sym(p->module, symbols[i].name);

        memcpy(symbols[i].slot, &at, sizeof at);
    }
}

static inline void open_with(struct program *p, uint32_t flags, const struct exti_hooks *hooks)
{
    struct exti_ctx_opts o = iso_opts(NULL, NULL);

    *p = (struct program){.may = 1};
    want_int(sem_init(&p->over, 0, 0), 0);
    if (!file_exists(in_tmp("ends.so")))
        iso_build(ends_source, "ends.so", "-w");
    o.flags |= flags;
    o.hooks = hooks;
    o.user = p;
    p->ctx = iso_open_opts(&o);
    p->module = iso_load(p->ctx, in_tmp("ends.so"));
    find_symbols(p);
}

static const struct exti_hooks hooks = {
    .size = sizeof hooks, .can_exit = may_exit, .exit = note_exit, .abort = note_abort};

static inline void open_program(struct program *p)
{
    open_with(p, 0, &hooks);
}

/* ---- threads that end contexts ---- */

struct task {
    struct program *p;
    void (*run)(const struct task *t);
    int way, status;
    const char *file, *code;
    pthread_t id;
    volatile int tid, result, done;
};

static inline void *run_task(void *arg)
{
    struct task *t = arg;

    t->tid = (int)syscall(SYS_gettid);
    t->run(t);
    t->done = 1;
    return NULL;
}

static inline void start(struct task *t)
{
    want_int(pthread_create(&t->id, NULL, run_task, t), 0);
}

static inline void end_here(const struct task *t)
{
    t->p->end(t->way, t->status);
}

/* Runs it in a child process, and gives the status. */
static inline int in_child(void (*body)(void))
{
    int status = -1;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        body();
        _exit(99);
    }
    want_int(waitpid(pid, &status, 0), pid);
    return status;
}

static inline void await_end(struct program *p, int status)
{
    while (sem_wait(&p->over) != 0)
        want_int(errno, EINTR);
    want_int(p->status, status);
}

/* Whether the thread waits, with all signals blocked that can be.  Valgrind's own threads have other
 * masks than those that it emulates. */
static inline bool is_parked(const struct task *t)
{
    char line[256], state = 0;
    unsigned long long blocked = 0;
    FILE *f = fopen(iso_text("/proc/self/task/%d/status", t->tid), "r");

    want(f != NULL);
    while (fgets(line, sizeof line, f)) {
        sscanf(line, "State: %c", &state);
        sscanf(line, "SigBlk: %llx", &blocked);
    }
    fclose(f);
    blocked |= 1ull << 31 | 1ull << 32;
    return state == 'S' &&
           (test_under_valgrind() || ~blocked == (1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1)));
}

static inline void want_parked(const struct task *t)
{
    while (!is_parked(t))
        usleep(1000);
    want_int(t->done, 0);
}

/* What was written to the pipe by now, or until its last writer is gone. */
static inline const char *read_all(int fd)
{
    static char text[256];
    ssize_t n;
    size_t length = 0;

    while ((n = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    return text;
}

static inline void open_pipe(int ends[2])
{
    want_int(pipe2(ends, O_CLOEXEC), 0);
    want_int(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
}

static inline void exec_here(const struct task *t)
{
    ((struct task *)t)->result = t->p->exec(t->way, t->file, t->code);
}

static inline struct task exec_of(struct program *p, int way, const char *code)
{
    const bool search = way == 2 || way == 3 || way == 5;

    return (struct task){
        .p = p, .run = exec_here, .way = way, .file = search ? "sh" : "/bin/sh", .code = code};
}

static inline void await_text(int fd, const char *text)
{
    char found[64] = "";

    while (strcmp(found, text) != 0) {
        strncat(found, read_all(fd), sizeof found - strlen(found) - 1);
        want(strncmp(found, text, strlen(found)) == 0);
        usleep(1000);
    }
}

#endif
