/* Signal actions and timers of contexts: each has its own, as a process has. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "tests/isolation/build.h"

static const char source[] =
    "#define _GNU_SOURCE\n"
    "#include <errno.h>\n"
    "#include <fcntl.h>\n"
    "#include <setjmp.h>\n"
    "#include <signal.h>\n"
    "#include <stdio.h>\n"
    "#include <sys/syscall.h>\n"
    "#include <sys/time.h>\n"
    "#include <sys/wait.h>\n"
    "#include <unistd.h>\n"
    "volatile sig_atomic_t count, thread, code, sender, value;\n"
    "static sigjmp_buf back;\n"
    "static void handle(int s) { (void)s; count++; thread = (int)syscall(SYS_gettid); }\n"
    "static void inform(int s, siginfo_t *i, void *c)\n"
    "{ (void)c; handle(s); code = i->si_code; sender = i->si_pid; value = i->si_value.sival_int; "
    "}\n"
    "static void leave(int s) { handle(s); siglongjmp(back, 1); }\n"
    "int t_set(int s, int flags)\n"
    "{\n"
    "    struct sigaction a = {.sa_handler = handle, .sa_flags = flags};\n"
    "    if (flags & SA_SIGINFO) a.sa_sigaction = inform;\n"
    "    return sigaction(s, &a, 0);\n"
    "}\n"
    "int t_ignore(int s) { return signal(s, SIG_IGN) == SIG_ERR; }\n"
    "int t_default(int s) { return signal(s, SIG_DFL) == SIG_ERR; }\n"
    "int t_has(int s)\n"
    "{\n"
    "    struct sigaction a;\n"
    "    if (sigaction(s, 0, &a)) return -1;\n"
    "    return a.sa_handler == SIG_IGN ? 1 : a.sa_handler == handle ? 2 : a.sa_handler ? 3 : 0;\n"
    "}\n"
    "int t_raise(int s) { return raise(s); }\n"
    "int t_kill(int s) { return kill(getpid(), s); }\n"
    "int t_queue(int s) { union sigval v = {.sival_int = 77}; return sigqueue(getpid(), s, v); }\n"
    "int t_thread(pthread_t t, int s) { return pthread_kill(t, s); }\n"
    "int t_wait(int s)\n"
    "{\n"
    "    sigset_t one;\n"
    "    siginfo_t i;\n"
    "    sigemptyset(&one);\n"
    "    sigaddset(&one, s);\n"
    "    sigprocmask(SIG_BLOCK, &one, 0);\n"
    "    count = -1;\n"
    "    int got;\n"
    "    do got = sigwaitinfo(&one, &i); while (got < 0 && errno == EINTR);\n"
    "    if (got != s) return -1;\n"
    "    return i.si_errno ? -2 : i.si_code;\n"
    "}\n"
    "int t_timer(int ms)\n"
    "{ struct itimerval t = {{0, 0}, {ms / 1000, ms % 1000 * 1000}};\n"
    "  return setitimer(ITIMER_REAL, &t, 0); }\n"
    "int t_processor_timer(int ms)\n"
    "{ struct itimerval t = {{0, 0}, {ms / 1000, ms % 1000 * 1000}};\n"
    "  return setitimer(ITIMER_PROF, &t, 0); }\n"
    "int t_left(void) { struct itimerval t; return getitimer(ITIMER_REAL, &t) ? -1 :\n"
    "    (int)(t.it_value.tv_sec * 1000 + t.it_value.tv_usec / 1000); }\n"
    "int t_alarm(int s) { return (int)alarm((unsigned)s); }\n"
    "int t_fault(int wrong)\n"
    "{\n"
    "    struct sigaction a = {.sa_handler = leave};\n"
    "    sigaction(SIGSEGV, &a, 0);\n"
    "    if (sigsetjmp(back, 1)) return 1;\n"
    "    *(volatile int *)(long)wrong = 1;\n"
    "    return 0;\n"
    "}\n"
    "int t_fork_kill(int s)\n"
    "{\n"
    "    int status;\n"
    "    pid_t pid = fork();\n"
    "    if (!pid) {\n"
    "        kill(getpid(), s);\n"
    "        for (int ms = 0; ms < 5000 && !count; ms++) usleep(1000);\n"
    "        _exit(count == 1 ? 7 : 8);\n"
    "    }\n"
    "    return waitpid(pid, &status, 0) == pid ? status : -1;\n"
    "}\n"
    "int t_child_sends(int s, int generations)\n"
    "{\n"
    "    int status;\n"
    "    pid_t self = getpid(), pid = fork(), child = pid;\n"
    "    while (!pid && --generations) {\n"
    "        if ((pid = fork()))\n"
    "            while (waitpid(pid, &status, 0) < 0 && errno == EINTR) ;\n"
    "        if (pid) _exit(0);\n"
    "    }\n"
    "    if (!pid) {\n"
    "        usleep(20000);\n"
    "        status = kill(self, s) != 0;\n"
    "        usleep(500000);\n" /* who has ended has no parent any more */
    "        _exit(status);\n"
    "    }\n"
    "    while (waitpid(child, &status, 0) < 0 && errno == EINTR) ;\n"
    "    return status;\n"
    "}\n"
    /* 0: by the number, 1: by a pidfd, 2: by a folder, 3: with a value; 4: to a child. */
    "int t_by_syscall(int s, int how)\n"
    "{\n"
    "    siginfo_t info = {.si_signo = s, .si_code = SI_QUEUE};\n"
    "    char folder[32];\n"
    "    int fd, rc;\n"
    "    pid_t pid = getpid();\n"
    "    if (!how) return (int)syscall(SYS_kill, pid, s);\n"
    "    if (how == 4 && !(pid = fork()))\n"
    "        for (;;) pause();\n"
    "    sprintf(folder, \"/proc/%d\", pid);\n"
    "    fd = how == 2 ? open(folder, O_DIRECTORY) : (int)syscall(SYS_pidfd_open, pid, 0);\n"
    "    info.si_value.sival_int = 88;\n"
    "    rc = (int)syscall(SYS_pidfd_send_signal, fd, s, how == 3 ? &info : 0, 0);\n"
    "    close(fd);\n"
    "    if (how == 4) waitpid(pid, &rc, 0);\n"
    "    return rc;\n"
    "}\n"
    "int t_sleep(int ms) { return usleep((unsigned)ms * 1000); }\n";

struct signaller {
    struct exti_ctx *ctx;
    volatile sig_atomic_t *count, *thread, *code, *sender, *value;
    int (*set)(int sig, int flags), (*thread_kill)(pthread_t t, int sig), (*left)(void);
    int (*ignore)(int), (*set_default)(int), (*has)(int), (*raise)(int), (*kill)(int);
    int (*queue)(int), (*wait)(int), (*timer)(int), (*processor_timer)(int), (*alarm)(int);
    int (*fault)(int), (*fork_kill)(int), (*sleep)(int), (*child_sends)(int sig, int generations);
    int (*by_syscall)(int sig, int how);
};

static volatile int ended_by;

static void note_end(void *user, struct exti_ctx *ctx, int sig)
{
    want(user == &ended_by && ctx);
    ended_by = sig;
}

static struct signaller open_with(uint32_t flags, bool program)
{
    const struct exti_hooks hooks = {.size = sizeof hooks, .end = note_end};
    struct exti_ctx_opts o = iso_opts(NULL, NULL);
    struct signaller s = {0};
    struct exti_module *m;
    const struct {
        void *slot;
        const char *name;
    } symbols[] = {
        {&s.count, "count"},
        {&s.thread, "thread"},
        {&s.code, "code"},
        {&s.sender, "sender"},
        {&s.value, "value"},
        {&s.set, "t_set"},
        {&s.thread_kill, "t_thread"},
        {&s.left, "t_left"},
        {&s.ignore, "t_ignore"},
        {&s.set_default, "t_default"},
        {&s.has, "t_has"},
        {&s.raise, "t_raise"},
        {&s.kill, "t_kill"},
        {&s.queue, "t_queue"},
        {&s.wait, "t_wait"},
        {&s.timer, "t_timer"},
        {&s.alarm, "t_alarm"},
        {&s.fault, "t_fault"},
        {&s.sleep, "t_sleep"},
        {&s.child_sends, "t_child_sends"},
        {&s.by_syscall, "t_by_syscall"},
        {&s.fork_kill, "t_fork_kill"},
        {&s.processor_timer, "t_processor_timer"},
    };

    o.flags |= flags;
    if (program) {
        o.hooks = &hooks;
        o.user = (void *)&ended_by;
    }
    if (!file_exists(in_tmp("signals.so")))
        iso_build(source, "signals.so", "-w");
    s.ctx = iso_open_opts(&o);
    m = iso_load(s.ctx, in_tmp("signals.so"));
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *at = iso_sym(m, symbols[i].name);

        memcpy(symbols[i].slot, &at, sizeof at);
    }
    return s;
}

static struct signaller open_signaller(void)
{
    return open_with(0, false);
}

static volatile sig_atomic_t program_count;

static void program_handler(int sig)
{
    (void)sig;
    program_count++;
}

static void program_sets(int sig)
{
    struct sigaction a = {.sa_handler = program_handler};

    want_int(sigaction(sig, &a, NULL), 0);
}

static void want_program(int sig, void (*handler)(int))
{
    struct sigaction now;

    want_int(sigaction(sig, NULL, &now), 0);
    want(!(now.sa_flags & SA_SIGINFO) && now.sa_handler == handler);
}

/* The thread sanitizer and valgrind delay signals. */
static void want_count(volatile const sig_atomic_t *count, int n)
{
    for (int ms = 0; ms < 10000 && *count < n; ms++)
        usleep(1000);
    want_int(*count, n);
}

static pid_t this_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* ---- actions ---- */

ISO_CASE(each_context_has_actions_of_its_own)
{
    struct signaller a = open_signaller(), b = open_signaller();

    want_int(a.set(SIGUSR1, 0), 0);
    want_int(a.has(SIGUSR1), 2);
    want_int(b.has(SIGUSR1), 0);
    want_int(b.ignore(SIGUSR1), 0);
    want_int(a.has(SIGUSR1), 2);
    want_int(b.has(SIGUSR1), 1);
    want_int(a.raise(SIGUSR1), 0);
    want_int(b.raise(SIGUSR1), 0);
    want_count(a.count, 1);
    want_int(b.set(SIGUSR1, 0), 0);
    want_int(b.kill(SIGUSR1), 0);
    want_count(b.count, 1);
    want_int(b.thread_kill(pthread_self(), SIGUSR1), 0);
    want_count(a.count, 1);
    want_count(b.count, 2);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(what_a_context_shares_is_the_processs)
{
    struct signaller a = open_with(EXTI_CTX_PROCESS_SIGNALS, false), b = open_signaller();
    struct sigaction now;

    want_int(a.set(SIGUSR1, 0), 0);
    want_int(sigaction(SIGUSR1, NULL, &now), 0);
    want(now.sa_handler != SIG_DFL && !(now.sa_flags & SA_SIGINFO));
    want_int(b.has(SIGUSR1), 0);
    want_int(kill(getpid(), SIGUSR1), 0);
    want_count(a.count, 1);
    want_int(a.set_default(SIGUSR1), 0);
    want_program(SIGUSR1, SIG_DFL);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(closing_takes_handlers_away_and_leaves_the_programs)
{
    struct sigaction before[32];
    struct signaller a, b;

    program_sets(SIGTERM);
    for (int sig = 1; sig < 32; sig++)
        want_int(sigaction(sig, NULL, &before[sig]), 0);
    a = open_signaller();
    b = open_signaller();
    for (int sig = 1; sig < 32; sig++)
        if (sig != SIGKILL && sig != SIGSTOP) {
            want_int(a.set(sig, 0), 0);
            want_int(b.set(sig, 0), 0);
        }
    want_int(kill(getpid(), SIGTERM), 0);
    want_count(&program_count, 1);
    iso_close_ctx(a.ctx);
    want_int(kill(getpid(), SIGTERM), 0);
    want_count(&program_count, 2);
    want_count(b.count, 2);
    iso_close_ctx(b.ctx);
    for (int sig = 1; sig < 32; sig++)
        want_program(sig, before[sig].sa_handler);
    want_int(kill(getpid(), SIGTERM), 0);
    want_count(&program_count, 3);
}

/* Without children nothing can come late for a function. */
ISO_CASE(a_function_that_was_replaced_is_forgotten)
{
    struct signaller a = open_signaller(), b = open_signaller();

    want_int(a.set(SIGUSR1, 0), 0);
    want_int(a.set_default(SIGUSR1), 0);
    want_program(SIGUSR1, SIG_DFL);
    want_int(a.set(SIGUSR1, 0), 0);
    want_int(a.fork_kill(SIGUSR1), 7 << 8);
    want_int(a.set_default(SIGUSR1), 0);
    iso_close_ctx(a.ctx);
    want_program(SIGUSR1, SIG_DFL);
    iso_close_ctx(b.ctx);
}

ISO_CASE(what_the_program_sets_later_is_kept)
{
    struct signaller a = open_signaller();

    want_int(a.set(SIGUSR1, 0), 0);
    program_sets(SIGUSR1);
    want_int(a.set(SIGUSR1, 0), 0);
    want_int(kill(getpid(), SIGUSR1), 0);
    want_count(&program_count, 1);
    want_count(a.count, 1);
    iso_close_ctx(a.ctx);
    want_program(SIGUSR1, program_handler);
}

ISO_CASE(flags_of_actions_are_kept)
{
    struct signaller a = open_signaller(), b = open_signaller();

    want_int(a.set(SIGUSR1, (int)SA_RESETHAND), 0);
    want_int(b.set(SIGUSR1, 0), 0);
    want_int(a.raise(SIGUSR1), 0);
    want_count(a.count, 1);
    want_int(a.has(SIGUSR1), 0);
    want_int(b.has(SIGUSR1), 2);
    want_int(a.set(SIGRTMIN, SA_SIGINFO), 0);
    want_int(a.queue(SIGRTMIN), 0);
    want_count(a.count, 2);
    want_int(*a.code, SI_QUEUE);
    want_int(*a.sender, getpid());
    want_int(*a.value, 77);
    want_int(a.kill(SIGRTMIN), 0);
    want_count(a.count, 3);
    want_int(*a.code, SI_USER);
    want_int(a.raise(SIGRTMIN), 0);
    want_count(a.count, 4);
    want_int(*a.code, SI_TKILL);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

/* ---- from outside ---- */

struct sleeper {
    struct signaller s;
    int flags, result;
    pid_t thread;
    _Atomic int ready;
    pthread_t id;
};

static void *sleep_in_context(void *arg)
{
    struct sleeper *t = arg;

    iso_expect_signals();
    t->thread = this_thread();
    want_int(t->s.set(SIGUSR2, t->flags), 0);
    t->ready = 1;
    t->result = t->s.sleep(20000);
    return NULL;
}

static void start_sleeper(struct sleeper *t, int flags)
{
    t->s = open_signaller();
    t->flags = flags;
    t->ready = 0;
    want_int(pthread_create(&t->id, NULL, sleep_in_context, t), 0);
    while (!t->ready)
        usleep(1000);
    usleep(20000);
}

ISO_CASE(a_signal_from_outside_reaches_each_context_on_its_thread)
{
    struct sleeper a, b;
    const pid_t child_of = getpid();
    pid_t pid;

    program_sets(SIGUSR2);
    start_sleeper(&a, SA_SIGINFO);
    start_sleeper(&b, 0);
    pid = fork();
    if (pid == 0)
        _exit(kill(child_of, SIGUSR2) != 0);
    want_int(pthread_join(a.id, NULL), 0);
    want_int(pthread_join(b.id, NULL), 0);
    want_int(a.result, -1); /* EINTR */
    want_int(b.result, -1);
    want_count(&program_count, 1);
    want_count(a.s.count, 1);
    want_count(b.s.count, 1);
    want_int(*a.s.thread, a.thread);
    want_int(*b.s.thread, b.thread);
    want_int(*a.s.code, SI_USER);
    want_int(*a.s.sender, pid);
    want(iso_join(pid));
    /* Their threads have ended. */
    want_int(kill(getpid(), SIGUSR2), 0);
    want_count(a.s.count, 2);
    want_count(b.s.count, 2);
    iso_close_ctx(a.s.ctx);
    iso_close_ctx(b.s.ctx);
}

/* As to the process whose children they are. */
ISO_CASE(what_children_send_reaches_their_context_alone)
{
    struct signaller a = open_signaller(), b = open_signaller();

    program_sets(SIGUSR2);
    want_int(a.set(SIGUSR2, 0), 0);
    want_int(b.set(SIGUSR2, 0), 0);
    want_int(a.child_sends(SIGUSR2, 1), 0);
    want_count(a.count, 1);
    want_int(a.child_sends(SIGUSR2, 3), 0);
    want_count(a.count, 2);
    want_int(*b.count, 0);
    want_int(program_count, 0);
    want_int(b.child_sends(SIGUSR2, 1), 0);
    want_count(b.count, 1);
    want_int(*a.count, 2);
    /* The process itself: the control. */
    want_int(kill(getpid(), SIGUSR2), 0);
    want_count(a.count, 3);
    want_count(b.count, 2);
    want_count(&program_count, 1);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

/* Linux 5.3 has it, valgrind 3.19 does not. */
static bool has_pidfds(void)
{
    const int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    return fd >= 0 && close(fd) == 0;
}

/* CPython's signal.pidfd_send_signal is such a call. */
ISO_CASE(what_is_sent_without_the_c_librarys_functions_is_the_contexts_own)
{
    struct signaller a = open_signaller(), b = open_signaller();
    const int ways = has_pidfds() ? 4 : 1;

    program_sets(SIGUSR2);
    want_int(b.set(SIGUSR2, 0), 0);
    want_int(a.set(SIGUSR2, SA_SIGINFO), 0);
    for (int how = 0; how < ways; how++) {
        want_int(a.by_syscall(SIGUSR2, how), 0);
        want_count(a.count, how + 1);
        want_int(*a.code, how == 3 ? SI_QUEUE : SI_USER);
    }
    if (ways == 4) {
        want_int(*a.value, 88);
        /* Other processes get theirs. */
        want_int(a.by_syscall(SIGKILL, 4), SIGKILL);
    }
    want_int(*a.count, ways);
    want_int(*b.count, 0);
    want_int(program_count, 0);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(a_child_can_end_its_context_alone)
{
    struct signaller a = open_with(0, true), b = open_with(0, true);

    want_int(b.set(SIGTERM, 0), 0);
    /* So that the process has an action. */
    want_int(a.set(SIGTERM, 0), 0);
    want_int(a.set_default(SIGTERM), 0);
    want_int(a.child_sends(SIGTERM, 1), 0);
    for (int ms = 0; ms < 5000 && !ended_by; ms++)
        usleep(1000);
    want_int(ended_by, SIGTERM);
    want_int(*b.count, 0);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(contexts_on_one_thread_each_get_a_signal_once)
{
    struct signaller s[4];

    for (int i = 0; i < 4; i++) {
        s[i] = open_signaller();
        want_int(s[i].set(SIGUSR1, 0), 0);
    }
    for (int n = 1; n <= 3; n++) {
        want_int(kill(getpid(), SIGUSR1), 0);
        for (int i = 0; i < 4; i++)
            want_count(s[i].count, n);
    }
    for (int i = 0; i < 4; i++)
        iso_close_ctx(s[i].ctx);
}

static void *wait_in_context(void *arg)
{
    struct sleeper *t = arg;

    iso_expect_signals();
    t->result = t->s.wait(SIGUSR1);
    return NULL;
}

ISO_CASE(a_context_can_wait_for_signals)
{
    struct sleeper t = {.s = open_signaller()};
    struct signaller other = open_signaller();

    want_int(other.set(SIGUSR1, 0), 0);
    want_int(pthread_create(&t.id, NULL, wait_in_context, &t), 0);
    while (*t.s.count == 0)
        usleep(1000);
    usleep(20000);
    want_int(kill(getpid(), SIGUSR1), 0);
    want_int(pthread_join(t.id, NULL), 0);
    want_count(other.count, 1);
    want(t.result != -1 && t.result != -2);
    iso_close_ctx(t.s.ctx);
    iso_close_ctx(other.ctx);
}

/* Where all other threads block a signal, the kernel gives it to one that waits.  It may wake the
 * other one too, for nothing: that is EINTR (retarget_shared_pending in kernel/signal.c). */
ISO_CASE(what_a_context_takes_by_waiting_the_others_get_too)
{
    struct sleeper t[2] = {{.s = open_signaller()}, {.s = open_signaller()}};
    struct signaller other = open_signaller();
    sigset_t one;

    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    want_int(other.set(SIGUSR1, 0), 0);
    want_int(pthread_sigmask(SIG_BLOCK, &one, NULL), 0);
    for (int i = 0; i < 2; i++) {
        want_int(pthread_create(&t[i].id, NULL, wait_in_context, &t[i]), 0);
        while (*t[i].s.count == 0)
            usleep(1000);
    }
    usleep(20000);
    want_int(kill(getpid(), SIGUSR1), 0);
    for (int i = 0; i < 2; i++) {
        want_int(pthread_join(t[i].id, NULL), 0);
        want_int(t[i].result, SI_USER);
    }
    want_int(*other.count, 0);
    want_int(pthread_sigmask(SIG_UNBLOCK, &one, NULL), 0);
    want_count(other.count, 1);
    for (int i = 0; i < 2; i++)
        iso_close_ctx(t[i].s.ctx);
    iso_close_ctx(other.ctx);
}

/* ---- the default action ---- */

ISO_CASE(a_program_that_is_to_end_is_asked)
{
    struct signaller a = open_with(0, true), b = open_with(0, true);

    want_int(a.kill(SIGTERM), 0);
    want_int(ended_by, SIGTERM);
    want_int(b.set(SIGHUP, 0), 0);
    want_int(kill(getpid(), SIGHUP), 0);
    want_int(ended_by, SIGHUP);
    want_count(b.count, 1);
    ended_by = 0;
    want_int(a.kill(SIGWINCH), 0);
    want_int(a.kill(SIGCHLD), 0);
    want_int(ended_by, 0);
    /* It is alone, and so the process is its. */
    iso_close_ctx(b.ctx);
    want_int(a.fork_kill(SIGTERM), SIGTERM);
    iso_close_ctx(a.ctx);
}

static void kill_by_default(void *arg)
{
    struct signaller a = open_signaller(), b = open_signaller();

    (void)arg;
    want_int(b.set(SIGUSR1, 0), 0);
    a.raise(SIGUSR1);
    sleep(5);
    _exit(0);
}

ISO_CASE(a_signal_that_nobody_takes_ends_the_process)
{
    int status;
    const pid_t pid = fork();

    if (pid == 0)
        kill_by_default(NULL);
    want_int(waitpid(pid, &status, 0), pid);
    want(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
}

ISO_CASE(a_child_is_its_contexts)
{
    struct signaller a = open_with(0, true), b = open_with(0, true);

    want_int(b.set(SIGTERM, 0), 0);
    want_int(a.fork_kill(SIGTERM), SIGTERM); /* by the default action */
    want_int(ended_by, 0);
    want_int(b.fork_kill(SIGTERM), 7 << 8); /* handled */
    want_int(a.set(SIGUSR1, 0), 0);
    want_int(a.fork_kill(SIGUSR1), 7 << 8);
    want_int(*a.count, 0);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(what_contexts_ignore_is_ignored)
{
    struct signaller a = open_with(0, true), b = open_with(0, true);

    want_int(a.ignore(SIGHUP), 0);
    want_int(a.kill(SIGHUP), 0);
    want_int(ended_by, 0);
    want_int(kill(getpid(), SIGHUP), 0);
    want_int(ended_by, SIGHUP); /* the other */
    ended_by = 0;
    want_int(b.ignore(SIGHUP), 0);
    want_program(SIGHUP, SIG_IGN);
    want_int(kill(getpid(), SIGHUP), 0);
    want_int(ended_by, 0);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
    want_program(SIGHUP, SIG_DFL);
}

/* ---- timers ---- */

ISO_CASE(timers_are_each_contexts_own)
{
    struct signaller a = open_signaller(), b = open_signaller();

    want_int(a.set(SIGALRM, SA_SIGINFO), 0);
    want_int(b.set(SIGALRM, 0), 0);
    want_int(a.timer(50), 0);
    want_int(b.alarm(100), 0);
    want(a.left() > 0 && a.left() <= 50);
    want(b.left() > 90000);
    while (*a.count == 0)
        usleep(1000);
    want_int(*a.code, SI_KERNEL);
    want_int(*b.count, 0);
    want_int(a.left(), 0);
    want_int(b.alarm(0), 100);
    want_int(b.left(), 0);
    want_int(*b.count, 0);
    program_sets(SIGALRM);
    want_int(a.set(SIGALRM, 0), 0);
    alarm(1);
    while (program_count == 0)
        usleep(1000);
    want_count(a.count, 1);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(a_timer_without_a_handler_ends_its_context)
{
    struct signaller a = open_with(0, true), b = open_with(0, true);

    want_int(a.timer(20), 0);
    while (!ended_by)
        usleep(1000);
    want_int(ended_by, SIGALRM);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(closing_stops_timers)
{
    struct signaller a = open_signaller(), b = open_signaller();

    want_int(a.set(SIGALRM, 0), 0);
    want_int(a.timer(50), 0);
    iso_close_ctx(a.ctx);
    usleep(100000);
    want_int(*b.count, 0);
    iso_close_ctx(b.ctx);
}

ISO_CASE(processor_time_is_the_threads)
{
    struct signaller a = open_signaller();

    want_int(a.set(SIGPROF, 0), 0);
    want_int(a.processor_timer(30), 0);
    usleep(60000);
    want_int(*a.count, 0);
    while (*a.count == 0)
        usleep(1);
    iso_close_ctx(a.ctx);
}

/* ---- faults ---- */

static sigjmp_buf back;
static volatile int *volatile nowhere = (volatile int *)16;

static void leave_fault(int sig)
{
    (void)sig;
    program_count++;
    siglongjmp(back, 1);
}

/* A handler that does not return keeps its context mapped, and what that needs. */
#ifdef __SANITIZE_ADDRESS__
void __lsan_disable(void);
#else
#define __lsan_disable() (void)0
#endif

ISO_CASE(a_fault_is_its_contexts_then_the_programs)
{
    struct sigaction act = {.sa_handler = leave_fault};
    struct signaller a, b;

    __lsan_disable();
    want_int(sigaction(SIGSEGV, &act, NULL), 0);
    a = open_signaller();
    b = open_signaller();
    want_int(a.fault(16), 1);
    want_count(a.count, 1);
    want_int(*b.count, 0);
    want_int(program_count, 0);
    if (!sigsetjmp(back, 1))
        *nowhere = 1;
    want_count(&program_count, 1);
    want_count(a.count, 1);
    a.set_default(SIGSEGV);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
    want_program(SIGSEGV, leave_fault);
}

/* ---- many at once ---- */

static _Atomic int no_more;

static void *raise_often(void *arg)
{
    struct signaller s = open_signaller();
    int n = 0;

    (void)arg;
    iso_expect_signals();
    want_int(s.set(SIGUSR1, SA_RESTART), 0);
    while (!no_more) {
        want_int(s.raise(SIGUSR1), 0);
        n++;
        while (*s.count < n)
            usleep(1000);
    }
    iso_close_ctx(s.ctx);
    return NULL;
}

ISO_CASE(contexts_come_and_go_while_signals_do)
{
    pthread_t threads[3];

    program_sets(SIGUSR1);
    iso_build(source, "signals.so", "-w");
    for (int i = 0; i < 3; i++)
        want_int(pthread_create(&threads[i], NULL, raise_often, NULL), 0);
    for (int i = 0; i < 40; i++) {
        struct signaller s = open_signaller();
        int status;
        pid_t pid;

        want_int(s.set(SIGUSR1, SA_RESTART), 0);
        want_int(kill(getpid(), SIGUSR1), 0);
        pid = fork();
        if (pid == 0)
            _exit(0);
        want_int(waitpid(pid, &status, 0), pid);
        want_int(status, 0);
        iso_close_ctx(s.ctx);
    }
    no_more = 1;
    for (int i = 0; i < 3; i++)
        want_int(pthread_join(threads[i], NULL), 0);
    want(program_count > 0);
    want_program(SIGUSR1, program_handler);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_context_has_actions_of_its_own),
        cmocka_unit_test(what_a_context_shares_is_the_processs),
        cmocka_unit_test(closing_takes_handlers_away_and_leaves_the_programs),
        cmocka_unit_test(a_function_that_was_replaced_is_forgotten),
        cmocka_unit_test(what_the_program_sets_later_is_kept),
        cmocka_unit_test(flags_of_actions_are_kept),
        cmocka_unit_test(a_signal_from_outside_reaches_each_context_on_its_thread),
        cmocka_unit_test(what_children_send_reaches_their_context_alone),
        cmocka_unit_test(what_is_sent_without_the_c_librarys_functions_is_the_contexts_own),
        cmocka_unit_test(a_child_can_end_its_context_alone),
        cmocka_unit_test(contexts_on_one_thread_each_get_a_signal_once),
        cmocka_unit_test(a_context_can_wait_for_signals),
        cmocka_unit_test(what_a_context_takes_by_waiting_the_others_get_too),
        cmocka_unit_test(a_program_that_is_to_end_is_asked),
        cmocka_unit_test(a_signal_that_nobody_takes_ends_the_process),
        cmocka_unit_test(a_child_is_its_contexts),
        cmocka_unit_test(what_contexts_ignore_is_ignored),
        cmocka_unit_test(timers_are_each_contexts_own),
        cmocka_unit_test(a_timer_without_a_handler_ends_its_context),
        cmocka_unit_test(closing_stops_timers),
        cmocka_unit_test(processor_time_is_the_threads),
        cmocka_unit_test(a_fault_is_its_contexts_then_the_programs),
        cmocka_unit_test(contexts_come_and_go_while_signals_do),
    };

    return cmocka_run_group_tests_name("isolation/context_signals", tests, NULL, NULL);
}
