/* The ends of contexts: exit, _exit, quick_exit and the exec family of a copy are its context's. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/time.h>

#include "tests/isolation/build.h"

static const char source[] =
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
    "int out = 2;\n"
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
    "void t_register(int what)\n"
    "{\n"
    "    void (*const f[])(void) = {a, b, again, at_once};\n"
    "    if (what < 4) atexit(f[what]);\n"
    "    else if (what == 4) on_exit(on, \"on\");\n"
    "    else at_quick_exit(quick);\n"
    "}\n"
    "void t_end(int way, int status)\n"
    "{\n"
    "    if (way == 0) exit(status);\n"
    "    if (way == 1) _exit(status);\n"
    "    if (way == 2) _Exit(status);\n"
    "    quick_exit(status);\n"
    "}\n"
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
    "static void handler(int sig) { (void)sig; _exit(6); }\n"
    "static void tick(int sig) { (void)sig; ticks++; }\n"
    "int t_handle(int sig) { return signal(sig, handler) == SIG_ERR; }\n"
    "int t_ignore(int sig) { return signal(sig, SIG_IGN) == SIG_ERR; }\n"
    "int t_raise(int sig) { return raise(sig); }\n"
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
    int *out;
    volatile int *ticks;
    void (*register_handler)(int), (*end)(int, int), (*end_on_thread)(int, int);
    void (*timer)(void), (*abort)(int);
    int (*fork)(int, int), (*spawn)(int, const char *), (*handle)(int), (*ignore)(int);
    int (*raise)(int), (*exec)(int, const char *, const char *), (*daemon)(void);

    sem_t over;
    int may, where, status, ends, aborted; /* what the hooks say and heard */
    sigjmp_buf *back;
};

/* ---- the hooks ---- */

static int may_exit(void *user, struct exti_ctx *ctx, uint32_t where)
{
    struct program *p = user;

    want(!p->ctx || ctx == p->ctx);
    p->where = (int)where;
    return p->may;
}

static void note_exit(void *user, struct exti_ctx *ctx, int status)
{
    struct program *p = user;

    want(ctx == p->ctx);
    p->status = status;
    p->ends++;
    sem_post(&p->over);
    if (p->back)
        siglongjmp(*p->back, 1);
}

static void note_abort(void *user, struct exti_ctx *ctx)
{
    struct program *p = user;

    want(ctx == p->ctx);
    if (write(*p->out, "abort", 5) != 5)
        _exit(9);
}

/* ---- opening ---- */

static void find_symbols(struct program *p)
{
    const struct {
        void *slot;
        const char *name;
    } symbols[] = {
        {&p->out, "out"},
        {&p->ticks, "ticks"},
        {&p->register_handler, "t_register"},
        {&p->end, "t_end"},
        {&p->end_on_thread, "t_end_on_thread"},
        {&p->timer, "t_timer"},
        {&p->abort, "t_abort"},
        {&p->fork, "t_fork"},
        {&p->spawn, "t_spawn"},
        {&p->handle, "t_handle"},
        {&p->ignore, "t_ignore"},
        {&p->raise, "t_raise"},
        {&p->exec, "t_exec"},
        {&p->daemon, "t_daemon"},
    };

    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *at = iso_sym(p->module, symbols[i].name);

        memcpy(symbols[i].slot, &at, sizeof at);
    }
}

static void open_with(struct program *p, uint32_t flags, const struct exti_hooks *hooks)
{
    struct exti_ctx_opts o = iso_opts(NULL, NULL);

    *p = (struct program){.may = 1};
    want_int(sem_init(&p->over, 0, 0), 0);
    if (!file_exists(in_tmp("ends.so")))
        iso_build(source, "ends.so", "-w");
    o.flags |= flags;
    o.hooks = hooks;
    o.user = p;
    p->ctx = iso_open_opts(&o);
    p->module = iso_load(p->ctx, in_tmp("ends.so"));
    find_symbols(p);
}

static const struct exti_hooks hooks = {.size = sizeof hooks,
                                        .can_exit = may_exit,
                                        .exit = note_exit,
                                        .abort = note_abort};

static void open_program(struct program *p)
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
    volatile int result, done;
};

static void *run_task(void *arg)
{
    struct task *t = arg;

    t->run(t);
    t->done = 1;
    return NULL;
}

static void start(struct task *t)
{
    want_int(pthread_create(&t->id, NULL, run_task, t), 0);
}

static void end_here(const struct task *t)
{
    t->p->end(t->way, t->status);
}

static void await_end(struct program *p, int status)
{
    while (sem_wait(&p->over) != 0)
        want_int(errno, EINTR);
    want_int(p->status, status);
}

static void want_parked(const struct task *t)
{
    usleep(20000);
    want_int(t->done, 0);
    want_int(pthread_kill(t->id, 0), 0);
}

/* What was written to the pipe by now, or until its last writer is gone. */
static const char *read_all(int fd)
{
    static char text[256];
    ssize_t n;
    size_t length = 0;

    while ((n = read(fd, text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    return text;
}

static void open_pipe(int ends[2])
{
    want_int(pipe2(ends, O_CLOEXEC), 0);
    want_int(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
}

/* ---- ends ---- */

ISO_CASE(each_way_to_end_is_the_contexts_alone)
{
    static struct program p[4], other;
    static struct task t[4];

    open_program(&other);
    for (int i = 0; i < 4; i++) {
        open_program(&p[i]);
        t[i] = (struct task){.p = &p[i], .run = end_here, .way = i, .status = 256 + 30 + i};
        start(&t[i]);
        await_end(&p[i], 30 + i);
        want_int(p[i].where, 0);
    }
    for (int i = 0; i < 4; i++)
        want_parked(&t[i]);
    want_int(other.ends, 0);
    want_int(other.fork(0, 3), 3 << 8);
    iso_close_ctx(other.ctx);
}

static void end_on_thread(const struct task *t)
{
    t->p->end_on_thread(t->way, t->status);
}

ISO_CASE(a_thread_of_the_contexts_is_told_from_others)
{
    static struct program p;
    static struct task t = {.p = &p, .run = end_on_thread, .way = 1, .status = 4};

    open_program(&p);
    start(&t);
    await_end(&p, 4);
    want_int(p.where, EXTI_EXIT_OWN_THREAD);
}

static void raise_here(const struct task *t)
{
    want_int(t->p->handle(SIGUSR1), 0);
    t->p->raise(SIGUSR1);
}

ISO_CASE(a_signal_handler_may_end_its_context)
{
    static struct program p;
    static struct task t = {.p = &p, .run = raise_here};
    struct sigaction now;

    open_program(&p);
    start(&t);
    await_end(&p, 6);
    want_int(p.where, EXTI_EXIT_IN_HANDLER);
    want_parked(&t);
    want_int(sigaction(SIGUSR1, NULL, &now), 0);
    want(now.sa_handler == SIG_DFL);
}

ISO_CASE(threads_that_end_a_context_at_once_all_stop)
{
    static struct program p;
    static struct task t[8];

    open_program(&p);
    for (int i = 0; i < 8; i++) {
        t[i] = (struct task){.p = &p, .run = end_here, .way = 0, .status = 5};
        start(&t[i]);
    }
    await_end(&p, 5);
    for (int i = 0; i < 8; i++)
        want_parked(&t[i]);
    want_int(p.ends, 1);
}

ISO_CASE(the_hook_may_leave_by_longjmp)
{
    static struct program p;
    sigjmp_buf back;

    open_program(&p);
    p.back = &back;
    if (sigsetjmp(back, 0) == 0)
        p.end(1, 3);
    want_int(p.status, 3);
}

ISO_CASE(what_has_ended_has_no_handlers_and_timers)
{
    static struct program p, other;
    static struct task t = {.p = &p, .run = end_here, .way = 1, .status = 1};
    struct sigaction now;
    int ticks;

    open_program(&p);
    open_program(&other);
    want_int(p.handle(SIGUSR2), 0);
    p.timer();
    while (*p.ticks < 3)
        usleep(1000);
    start(&t);
    await_end(&p, 1);
    ticks = *p.ticks;
    usleep(20000);
    want_int(*p.ticks, ticks);
    want_int(sigaction(SIGUSR2, NULL, &now), 0);
    want(now.sa_handler == SIG_DFL);
    iso_close_ctx(other.ctx);
}

static int note_finding(void *user, const struct exti_error *finding)
{
    snprintf(user, 512, "%s", finding->message);
    return 0;
}

ISO_CASE(what_has_ended_stays_mapped_and_is_reported)
{
    static struct program p, next;
    static struct task t = {.p = &p, .run = end_here, .way = 1, .status = 1};
    char said[512] = "";
    size_t left = 0;

    open_program(&p);
    start(&t);
    await_end(&p, 1);
    want_int(exti_ctx_close_report(p.ctx, note_finding, said, &left, NULL), 0);
    want(left >= 2);
    want_text(said, "has ended");
    want_parked(&t);
    want_int(*p.ticks, 0); /* it is readable */
    open_program(&next);
    want_int(exti_ctx_close_report(next.ctx, note_finding, said, &left, NULL), 0);
    want_int((long)left, 0);
}

/* ---- exit handlers ---- */

/* Registers `handlers` (as t_register numbers them) in a context, ends it, and wants to read `text`
 * by then, and `later` when the process has ended too. */
static void want_handlers(int way, const char *handlers, int status, const char *text,
                          const char *later)
{
    static struct program p;
    static struct task t;
    int ends[2];
    pid_t pid;

    open_pipe(ends);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        open_program(&p);
        *p.out = ends[1];
        for (; *handlers; handlers++)
            p.register_handler(*handlers - '0');
        t = (struct task){.p = &p, .run = end_here, .way = way, .status = 3};
        start(&t);
        await_end(&p, status);
        want(strcmp(read_all(ends[0]), text) == 0);
        exti_ctx_close(p.ctx, NULL);
        exit(0);
    }
    want(iso_join(pid));
    close(ends[1]);
    want(strcmp(read_all(ends[0]), later) == 0);
    close(ends[0]);
}

ISO_CASE(exit_runs_the_contexts_handlers)
{
    want_handlers(0, "01", 3, "bca", "");
    want_handlers(0, "0145", 3, "3onbca", "");
    want_handlers(0, "021", 9, "bcagaina", "");
    want_handlers(0, "031", 8, "bconce", "");
}

ISO_CASE(quick_exit_runs_its_own_and_others_none)
{
    want_handlers(3, "01545", 3, "qq", "");
    want_handlers(1, "0145", 3, "", "");
    want_handlers(2, "0145", 3, "", "");
}

ISO_CASE(control_handlers_of_a_context_that_lives_run_with_the_process)
{
    int ends[2];
    pid_t pid;

    open_pipe(ends);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        static struct program p;

        open_with(&p, EXTI_CTX_KEEP, &hooks);
        *p.out = ends[1];
        p.register_handler(0);
        p.register_handler(4);
        p.register_handler(5);
        exti_ctx_close(p.ctx, NULL);
        exit(0);
    }
    want(iso_join(pid));
    close(ends[1]);
    want_int((long)strspn(read_all(ends[0]), "a0on"), 4);
}

ISO_CASE(unloading_runs_handlers_once)
{
    static struct program p, other;
    int ends[2];

    open_pipe(ends);
    open_program(&p);
    open_program(&other);
    *p.out = *other.out = ends[1];
    p.register_handler(4);
    p.register_handler(0);
    p.register_handler(5);
    other.register_handler(1);
    iso_close_ctx(p.ctx);
    want(strcmp(read_all(ends[0]), "0ona") == 0);
    iso_close_ctx(other.ctx);
    want(strcmp(read_all(ends[0]), "bc") == 0);
    quick_exit(0);
}

/* ---- the process's meaning ---- */

static int ended_with(uint32_t flags, const struct exti_hooks *h, int may, int way)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        static struct program p;

        open_with(&p, flags, h);
        p.may = may;
        p.end(way, 7);
        _exit(99);
    }
    want_int(waitpid(pid, &status, 0), pid);
    return status;
}

ISO_CASE(control_without_hooks_the_process_ends)
{
    static const struct exti_hooks none = {.size = sizeof none},
                                   half = {.size = sizeof half, .exit = note_exit};

    for (int way = 0; way < 4; way++) {
        want_int(ended_with(0, NULL, 1, way), 7 << 8);
        want_int(ended_with(0, &none, 1, way), 7 << 8);
        want_int(ended_with(0, &half, 1, way), 7 << 8);
        want_int(ended_with(0, &hooks, 0, way), 7 << 8);
        want_int(ended_with(EXTI_CTX_PROCESS_ENDS, &hooks, 1, way), 7 << 8);
    }
}

ISO_CASE(a_child_that_was_forked_ends_as_a_process)
{
    static struct program p, other;
    int ends[2];

    open_pipe(ends);
    open_program(&p);
    open_program(&other);
    *p.out = *other.out = ends[1];
    p.register_handler(0);
    other.register_handler(1);
    for (int way = 0; way < 5; way++)
        want_int(p.fork(way, 40 + way), (40 + way) << 8);
    want(strcmp(read_all(ends[0]), "a") == 0);
    want_int(p.spawn(0, "/bin/false"), 1 << 8);
    want_int(p.spawn(1, "/bin/false"), 1 << 8);
    want_int(p.spawn(1, "/nowhere"), 99 << 8);
    want_int(p.ends, 0);
    iso_close_ctx(p.ctx);
    iso_close_ctx(other.ctx);
}

ISO_CASE(a_constructor_ends_the_process)
{
    static const char ends_at_once[] = "#include <stdlib.h>\n"
                                       "__attribute__((constructor)) static void begin(void)\n"
                                       "{ exit(5); }\n";
    int status;
    pid_t pid;

    iso_build(ends_at_once, "begin.so", "");
    pid = fork();
    if (pid == 0) {
        static struct program p;

        open_program(&p);
        iso_load(p.ctx, in_tmp("begin.so"));
        _exit(99);
    }
    want_int(waitpid(pid, &status, 0), pid);
    want_int(status, 5 << 8);
}

ISO_CASE(abort_is_told_and_ends_the_process)
{
    for (int way = 0; way < 2; way++) {
        int ends[2], status;
        pid_t pid;

        open_pipe(ends);
        pid = fork();
        if (pid == 0) {
            static struct program p;

            open_program(&p);
            *p.out = ends[1];
            dup2(open("/dev/null", O_WRONLY), 2);
            p.abort(way);
            _exit(99);
        }
        want_int(waitpid(pid, &status, 0), pid);
        want(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        close(ends[1]);
        want(strcmp(read_all(ends[0]), "abort") == 0);
        close(ends[0]);
    }
}

/* ---- other programs ---- */

static void exec_here(const struct task *t)
{
    ((struct task *)t)->result = t->p->exec(t->way, t->file, t->code);
}

static struct task exec_of(struct program *p, int way, const char *code)
{
    const bool search = way == 2 || way == 3 || way == 5;

    return (struct task){.p = p,
                         .run = exec_here,
                         .way = way,
                         .file = search ? "sh" : "/bin/sh",
                         .code = code};
}

ISO_CASE(exec_runs_a_child_and_ends_with_it)
{
    static struct program p[7];
    static struct task t[7];

    for (int way = 0; way < 7; way++) {
        const bool other = way == 3 || way == 6;
        const char *code = iso_text("[ \"$0$1$NAME\" = xy%s ] && exit %d; echo $0 $1 $NAME >&2",
                                    other ? "other" : "own", way + 20);

        open_program(&p[way]);
        t[way] = exec_of(&p[way], way, code);
        start(&t[way]);
        await_end(&p[way], way + 20);
        want_parked(&t[way]);
    }
}

ISO_CASE(a_program_that_dies_by_a_signal_tells_it)
{
    static struct program p;
    static struct task t;

    open_program(&p);
    t = exec_of(&p, 0, "kill -9 $$");
    start(&t);
    await_end(&p, 128 + SIGKILL);
}

ISO_CASE(exec_that_fails_returns)
{
    static struct program p;

    open_program(&p);
    want_int(p.exec(0, "/nowhere", ""), -ENOENT);
    want_int(p.exec(2, "nowhere", ""), -ENOENT);
    want_int(p.exec(0, "/etc/passwd", ""), -EACCES);
    want_int(p.ends, 0);
    iso_close_ctx(p.ctx);
}

ISO_CASE(control_without_hooks_the_process_executes)
{
    static struct program p;
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        open_with(&p, 0, NULL);
        p.exec(0, "/bin/sh", iso_text("[ $$ = %ld ] && exit 12", (long)getpid()));
        _exit(99);
    }
    want_int(waitpid(pid, &status, 0), pid);
    want_int(status, 12 << 8);
}

/* A program that ignores what the context does, and no more, and blocks what the thread does. */
ISO_CASE(a_program_has_the_signals_of_the_context)
{
    static struct program p, other;
    static struct task t;
    sigset_t blocked;

    open_program(&p);
    open_program(&other);
    want_int(other.ignore(SIGUSR1), 0);
    want_int(p.ignore(SIGUSR2), 0);
    want_int(p.handle(SIGHUP), 0);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGWINCH);
    want_int(pthread_sigmask(SIG_BLOCK, &blocked, NULL), 0);
    t = exec_of(&p, 0,
                "get() { sed -n \"s/^$2:.*\\($3\\)$/\\1/p\" /proc/$1/status; }; "
                "[ $(get self SigIgn ....)$(get self SigCgt ....) = 08000000 ] && "
                "[ $(get $$ SigBlk ........) = 08000000 ] && exit 3; "
                "grep Sig /proc/$$/status >&2");
    start(&t);
    await_end(&p, 3);
    iso_close_ctx(other.ctx);
}

ISO_CASE(what_is_sent_to_the_process_reaches_the_program)
{
    static struct program p, other;
    static struct task t;
    const pid_t own = getpid();
    int ends[2];
    pid_t pid;

    open_pipe(ends);
    open_program(&p);
    open_program(&other);
    want_int(other.ignore(SIGTERM), 0);
    want_int(fcntl(ends[1], F_SETFD, 0), 0);
    t = exec_of(&p, 0, iso_text("trap 'exit 4' TERM; echo ready >&%d; while :; do sleep 0.01; done",
                                ends[1]));
    start(&t);
    while (*read_all(ends[0]) == '\0')
        usleep(1000);
    pid = fork();
    if (pid == 0)
        _exit(kill(own, SIGTERM) != 0);
    want(iso_join(pid));
    await_end(&p, 4);
    iso_close_ctx(other.ctx);
}

static void become_daemon(const struct task *t)
{
    const int rc = t->p->daemon();

    if (write(*t->p->out, rc ? "failed" : "daemon", 6) != 6)
        _exit(1);
    _exit(0);
}

ISO_CASE(a_daemon_leaves_the_process)
{
    static struct program p;
    static struct task t = {.p = &p, .run = become_daemon};
    int ends[2];

    open_pipe(ends);
    open_program(&p);
    *p.out = ends[1];
    start(&t);
    await_end(&p, 0);
    while (*read_all(ends[0]) == '\0')
        usleep(1000);
    want_parked(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_to_end_is_the_contexts_alone),
        cmocka_unit_test(a_thread_of_the_contexts_is_told_from_others),
        cmocka_unit_test(a_signal_handler_may_end_its_context),
        cmocka_unit_test(threads_that_end_a_context_at_once_all_stop),
        cmocka_unit_test(the_hook_may_leave_by_longjmp),
        cmocka_unit_test(what_has_ended_has_no_handlers_and_timers),
        cmocka_unit_test(what_has_ended_stays_mapped_and_is_reported),
        cmocka_unit_test(exit_runs_the_contexts_handlers),
        cmocka_unit_test(quick_exit_runs_its_own_and_others_none),
        cmocka_unit_test(control_handlers_of_a_context_that_lives_run_with_the_process),
        cmocka_unit_test(unloading_runs_handlers_once),
        cmocka_unit_test(control_without_hooks_the_process_ends),
        cmocka_unit_test(a_child_that_was_forked_ends_as_a_process),
        cmocka_unit_test(a_constructor_ends_the_process),
        cmocka_unit_test(abort_is_told_and_ends_the_process),
        cmocka_unit_test(exec_runs_a_child_and_ends_with_it),
        cmocka_unit_test(a_program_that_dies_by_a_signal_tells_it),
        cmocka_unit_test(exec_that_fails_returns),
        cmocka_unit_test(control_without_hooks_the_process_executes),
        cmocka_unit_test(a_program_has_the_signals_of_the_context),
        cmocka_unit_test(what_is_sent_to_the_process_reaches_the_program),
        cmocka_unit_test(a_daemon_leaves_the_process),
    };

    return cmocka_run_group_tests_name("isolation/ends", tests, NULL, NULL);
}
