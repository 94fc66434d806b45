/* Timers of timer_create(2) in contexts: each sends its signals to its own context alone. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/isolation/build.h"

static const char source[] =
    "#define _GNU_SOURCE\n"
    "#include <errno.h>\n"
    "#include <pthread.h>\n"
    "#include <signal.h>\n"
    "#include <stdint.h>\n"
    "#include <string.h>\n"
    "#include <sys/signalfd.h>\n"
    "#include <sys/syscall.h>\n"
    "#include <sys/wait.h>\n"
    "#include <time.h>\n"
    "#include <unistd.h>\n"
    "volatile sig_atomic_t count, thread, code, number, overrun, on_stack, called;\n"
    "void *volatile value;\n"
    "static timer_t made;\n"
    "static char *stack;\n"
    "static size_t stack_size;\n"
    "static stack_t before; /* a sanitizer's */\n"
    "static void handle(int s, siginfo_t *i, void *c)\n"
    "{\n"
    "    char here;\n"
    "    thread = (int)syscall(SYS_gettid);\n"
    "    code = i->si_code;\n"
    "    number = i->si_timerid;\n"
    "    if (i->si_overrun > overrun) overrun = i->si_overrun;\n"
    "    value = i->si_value.sival_ptr;\n"
    "    on_stack = stack && &here >= stack && &here < stack + stack_size;\n"
    "    count++;\n"
    "}\n"
    "static void notify(union sigval v) { value = v.sival_ptr; __sync_fetch_and_add(&called, 1); "
    "}\n"
    "int t_handle(int s, int flags)\n"
    "{\n"
    "    struct sigaction a = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | flags};\n"
    "    return sigaction(s, &a, 0);\n"
    "}\n"
    "int t_stack(char *at, size_t size)\n"
    "{ stack_t s = {.ss_sp = at, .ss_size = size}; stack = at; stack_size = size;\n"
    "  return sigaltstack(&s, &before); }\n"
    "int t_unstack(void) { return sigaltstack(&before, 0); }\n"
    "int t_create(int notify_by, int s, void *v)\n"
    "{\n"
    "    struct sigevent e = {.sigev_notify = notify_by, .sigev_signo = s};\n"
    "    int r;\n"
    "    e.sigev_value.sival_ptr = v;\n"
    "    if (notify_by == SIGEV_THREAD) e.sigev_notify_function = notify;\n"
    "    if (notify_by == SIGEV_THREAD_ID) e._sigev_un._tid = (int)syscall(SYS_gettid);\n"
    "    r = timer_create(CLOCK_MONOTONIC, notify_by < 0 ? 0 : &e, &made);\n"
    "    return r ? -errno : 0;\n"
    "}\n"
    "int t_number(void) { return (int)(intptr_t)made; }\n"
    "int t_arm(int ms, int every)\n"
    "{ struct itimerspec t = {{every / 1000, every % 1000 * 1000000}, {ms / 1000, ms % 1000 * "
    "1000000}};\n"
    "  int r = timer_settime(made, 0, &t, 0); return r ? -errno : 0; }\n"
    "int t_left(void) { struct itimerspec t; return timer_gettime(made, &t) ? -errno :\n"
    "    (int)(t.it_value.tv_sec * 1000 + (t.it_value.tv_nsec + 999999) / 1000000); }\n"
    "int t_overrun(void) { int r = timer_getoverrun(made); return r; }\n"
    "int t_delete(void) { int r = timer_delete(made); return r ? -errno : 0; }\n"
    "int t_block(int s, int block)\n"
    "{ sigset_t m; sigemptyset(&m); sigaddset(&m, s);\n"
    "  return pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &m, 0); }\n"
    "int t_wait(int s)\n"
    "{ sigset_t m; siginfo_t i; int r; sigemptyset(&m); sigaddset(&m, s); r = sigwaitinfo(&m, "
    "&i);\n"
    "  code = i.si_code; value = i.si_value.sival_ptr; number = i.si_timerid; return r; }\n"
    "int t_wait_fd(int s)\n"
    "{ sigset_t m; struct signalfd_siginfo i; int fd; sigemptyset(&m); sigaddset(&m, s);\n"
    "  fd = signalfd(-1, &m, 0); if (t_arm(5, 0) || read(fd, &i, sizeof i) != sizeof i) return "
    "-1;\n"
    "  close(fd); code = i.ssi_code; value = (void *)i.ssi_ptr; number = i.ssi_tid;\n"
    "  return i.ssi_signo; }\n"
    "int t_child(void)\n"
    "{ int status; pid_t pid = fork(); if (!pid) _exit(t_left() == -EINVAL && !t_create(0, 10, 0)\n"
    "    && !t_arm(1000, 0) && t_left() > 0 ? 7 : 8);\n"
    "  return waitpid(pid, &status, 0) == pid ? status : -1; }\n";

struct timed {
    struct exti_ctx *ctx;
    volatile sig_atomic_t *count, *thread, *code, *number, *overrun, *on_stack, *called;
    void *volatile *value;
    int (*handle)(int sig, int flags), (*stack)(char *at, size_t size), (*unstack)(void);
    int (*create)(int by, int sig, void *value), (*arm)(int ms, int every);
    int (*left)(void), (*get_overrun)(void), (*delete)(void), (*child)(void), (*get_number)(void);
    int (*block)(int sig, int block), (*wait)(int sig), (*wait_fd)(int sig);
};

static struct timed timed_with(uint32_t flags)
{
    struct exti_ctx_opts o = iso_opts(NULL, NULL);
    struct timed t = {0};
    struct exti_module *m;
    const struct {
        void *slot;
        const char *name;
    } symbols[] = {
        {&t.count, "count"},       {&t.thread, "thread"},       {&t.code, "code"},
        {&t.number, "number"},     {&t.overrun, "overrun"},     {&t.on_stack, "on_stack"},
        {&t.called, "called"},     {&t.value, "value"},         {&t.handle, "t_handle"},
        {&t.stack, "t_stack"},     {&t.create, "t_create"},     {&t.arm, "t_arm"},
        {&t.left, "t_left"},       {&t.delete, "t_delete"},     {&t.get_overrun, "t_overrun"},
        {&t.child, "t_child"},     {&t.block, "t_block"},       {&t.wait, "t_wait"},
        {&t.wait_fd, "t_wait_fd"}, {&t.get_number, "t_number"}, {&t.unstack, "t_unstack"},
    };

    o.flags = flags;
    if (!file_exists(in_tmp("timers.so")))
        iso_build(source, "timers.so", "-w");
    t.ctx = iso_open_opts(&o);
    m = iso_load(t.ctx, in_tmp("timers.so"));
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *at = iso_sym(m, symbols[i].name);

        memcpy(symbols[i].slot, &at, sizeof at);
    }
    return t;
}

static struct timed timed(void)
{
    return timed_with(0);
}

static void await(volatile const sig_atomic_t *n, int least)
{
    for (int ms = 0; ms < 20000 && *n < least; ms++)
        usleep(1000);
    want(*n >= least);
}

static char mark[2];

/* How many timers the process has; -1: the kernel does not tell. */
static int count_timers(void)
{
    FILE *f = fopen("/proc/self/timers", "r");
    char line[256];
    int n = 0;

    if (!f)
        return -1;
    while (fgets(line, sizeof line, f))
        n += strncmp(line, "ID:", 3) == 0;
    fclose(f);
    return n;
}

ISO_CASE(each_contexts_timers_are_its_own)
{
    struct timed t[2];

    for (int i = 0; i < 2; i++) {
        t[i] = timed();
        want_int(t[i].handle(SIGUSR1, 0), 0);
        want_int(t[i].create(SIGEV_SIGNAL, SIGUSR1, &mark[i]), 0);
    }
    want_int(t[0].arm(5, 5), 0);
    await(t[0].count, 10);
    want_int(*t[1].count, 0);
    want_int(*t[0].code, SI_TIMER);
    want(*t[0].value == &mark[0]);
    want_int(*t[0].number, t[0].get_number());
    want_int(t[0].arm(0, 0), 0);
    want_int(t[1].arm(5, 0), 0);
    await(t[1].count, 1);
    want(*t[1].value == &mark[1]);
    want_int(*t[1].count, 1);
    want_int(t[0].arm(100000, 0), 0);
    want(t[0].left() > 50000 && t[0].left() <= 100000);
    want_int(t[1].left(), 0);
    want_int(t[0].delete(), 0);
    want_int(t[0].left(), -EINVAL);
    for (int i = 0; i < 2; i++)
        iso_close_ctx(t[i].ctx);
}

ISO_CASE(control_without_actions_of_their_own_the_last_handler_has_it)
{
    struct timed t[2];

    for (int i = 0; i < 2; i++) {
        t[i] = timed_with(EXTI_CTX_PROCESS_SIGNALS);
        want_int(t[i].handle(SIGUSR1, 0), 0);
    }
    want_int(t[0].create(SIGEV_SIGNAL, SIGUSR1, &mark[0]), 0);
    want_int(t[0].arm(5, 0), 0);
    await(t[1].count, 1);
    want_int(*t[0].count, 0);
    want_int(t[0].delete(), 0);
    for (int i = 0; i < 2; i++)
        iso_close_ctx(t[i].ctx);
}

ISO_CASE(overruns_are_counted)
{
    struct timed t = timed();

    want_int(t.handle(SIGUSR1, 0), 0);
    want_int(t.create(SIGEV_SIGNAL, SIGUSR1, NULL), 0);
    want_int(t.block(SIGUSR1, 1), 0);
    want_int(t.arm(1, 1), 0);
    while (clock() < CLOCKS_PER_SEC / 10)
        ;
    want_int(t.block(SIGUSR1, 0), 0);
    await(t.count, 1);
    want(*t.overrun > 0);
    want_int(t.delete(), 0);
    iso_close_ctx(t.ctx);
}

static struct timed shared;
static _Atomic int stop;

static void *handle_on_thread(void *arg)
{
    pid_t *tid = arg;

    iso_expect_signals();
    *tid = (pid_t)syscall(SYS_gettid);
    want_int(shared.handle(SIGUSR1, 0), 0);
    stop = -1;
    while (stop != 1)
        usleep(1000);
    return NULL;
}

/* Also one that sets its handler after the timer was created. */
ISO_CASE(a_timer_goes_to_the_thread_that_handles_it)
{
    pthread_t t;
    pid_t tid = 0;

    shared = timed();
    want_int(shared.create(SIGEV_SIGNAL, SIGUSR1, &mark[0]), 0);
    want_int(pthread_create(&t, NULL, handle_on_thread, &tid), 0);
    while (stop != -1)
        usleep(1000);
    want_int(shared.arm(5, 0), 0);
    await(shared.count, 1);
    want_int(*shared.thread, tid);
    want_int(*shared.code, SI_TIMER);
    want(*shared.value == &mark[0]);
    want_int(*shared.number, shared.get_number());
    want_int(shared.delete(), 0);
    /* Or to the thread that is named. */
    want_int(shared.create(SIGEV_SIGNAL, SIGUSR1, &mark[1]), 0);
    want_int(shared.arm(5, 0), 0);
    await(shared.count, 2);
    want_int(*shared.thread, tid);
    stop = 1;
    want_int(pthread_join(t, NULL), 0);
    want_int(shared.arm(5, 0), 0); /* its thread has ended */
    want_int(shared.delete(), 0);
    want_int(shared.handle(SIGUSR1, 0), 0);
    want_int(shared.create(SIGEV_THREAD_ID, SIGUSR1, &mark[0]), 0);
    want_int(shared.arm(5, 0), 0);
    await(shared.count, 3);
    want_int(*shared.thread, (pid_t)syscall(SYS_gettid));
    iso_close_ctx(shared.ctx);
}

static void *wait_on_thread(void *arg)
{
    want_int(shared.wait(SIGUSR2), SIGUSR2);
    return arg;
}

ISO_CASE(waiting_gets_what_the_kernel_says)
{
    struct timed t = timed(), other = timed();
    pthread_t waiter;

    want_int(other.handle(SIGUSR1, 0), 0);
    want_int(t.block(SIGUSR1, 1), 0);
    want_int(t.create(SIGEV_SIGNAL, SIGUSR1, &mark[1]), 0);
    want_int(t.arm(5, 0), 0);
    want_int(t.wait(SIGUSR1), SIGUSR1);
    want_int(*t.code, SI_TIMER);
    want(*t.value == &mark[1]);
    want_int(*t.number, t.get_number());
    /* Those of a timer that was made before, too: for none of the threads handles them. */
    want_int(t.block(SIGUSR2, 1), 0);
    want_int(t.delete(), 0);
    want_int(t.create(SIGEV_SIGNAL, SIGUSR2, &mark[0]), 0);
    want_int(t.arm(200, 0), 0);
    shared = t;
    want_int(pthread_create(&waiter, NULL, wait_on_thread, NULL), 0);
    want_int(pthread_join(waiter, NULL), 0);
    want(*t.value == &mark[0]);
    want_int(*t.code, SI_TIMER);
    want_int(t.delete(), 0);
    want_int(t.create(SIGEV_SIGNAL, SIGUSR1, &mark[1]), 0);
    *t.value = NULL;
    want_int(t.wait_fd(SIGUSR1), SIGUSR1);
    want(*t.value == &mark[1]);
    want_int(*t.number, t.get_number());
    want_int(*other.count, 0);
    iso_close_ctx(t.ctx);
    iso_close_ctx(other.ctx);
}

ISO_CASE(other_kinds_are_as_ever)
{
    struct timed t = timed();

    want_int(t.create(SIGEV_NONE, 0, NULL), 0);
    want_int(t.arm(100000, 0), 0);
    want(t.left() > 50000);
    want_int(t.delete(), 0);
#ifndef __SANITIZE_THREAD__ /* which does not know of threads that the C library starts */
    want_int(t.create(SIGEV_THREAD, 0, &mark[1]), 0);
    want_int(t.arm(5, 5), 0);
    await(t.called, 3);
    want(*t.value == &mark[1]);
    want_int(t.delete(), 0);
#endif
    want_int(t.create(SIGEV_SIGNAL, 99, NULL), -EINVAL);
    want_int(t.create(SIGEV_SIGNAL, 0, NULL), -EINVAL);
    want_int(t.create(77, SIGUSR1, NULL), -EINVAL);
    /* The default: SIGALRM. */
    want_int(t.handle(SIGALRM, 0), 0);
    want_int(t.create(-1, 0, NULL), 0);
    want_int(t.arm(5, 0), 0);
    await(t.count, 1);
    want_int(*t.code, SI_TIMER);
    iso_close_ctx(t.ctx);
}

ISO_CASE(closing_deletes_timers)
{
    struct timed a = timed(), b = timed();
    const int before = count_timers();

    want_int(a.handle(SIGUSR1, 0), 0);
    want_int(b.handle(SIGUSR1, 0), 0);
    for (int i = 0; i < 200; i++) {
        want_int(a.create(SIGEV_SIGNAL, SIGUSR1, NULL), 0);
        want_int(a.arm(i == 199 ? 5 : 100000, 5), 0);
    }
    want_int(b.create(SIGEV_SIGNAL, SIGUSR1, NULL), 0);
    await(a.count, 5);
    want(before < 0 || count_timers() == before + 201);
    iso_close_ctx(a.ctx);
    want(before < 0 || count_timers() == before + 1);
    want_int(*b.count, 0);
    want_int(b.arm(5, 0), 0);
    await(b.count, 1);
    iso_close_ctx(b.ctx);
    want(before < 0 || count_timers() == before);
}

ISO_CASE(a_child_has_none)
{
    struct timed t = timed();

    want_int(t.create(SIGEV_SIGNAL, SIGUSR1, NULL), 0);
    want_int(t.arm(100000, 0), 0);
    want_int(t.child(), 7 << 8);
    want(t.left() > 50000);
    iso_close_ctx(t.ctx);
}

static atomic_int programs;

static void count_programs(int sig)
{
    (void)sig;
    programs++;
}

/* The kernel counts a child's timers from the beginning. */
ISO_CASE(a_childs_timer_may_have_the_number_of_one_of_its_parents)
{
    const struct itimerspec soon = {.it_value = {.tv_nsec = 5000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct sigaction act = {.sa_handler = count_programs};
    struct timed t;
    int status;
    timer_t id;
    pid_t pid;

    want_int(sigaction(SIGUSR1, &act, NULL), 0);
    t = timed();
    want_int(t.handle(SIGUSR1, 0), 0);
    want_int(t.create(SIGEV_SIGNAL, SIGUSR1, NULL), 0);
    pid = fork(); /* the program's, by which the handlers stay */
    if (pid == 0) {
        if (timer_create(CLOCK_MONOTONIC, &event, &id) || timer_settime(id, 0, &soon, NULL))
            _exit(1);
        for (int ms = 0; ms < 20000 && !programs; ms++)
            usleep(1000);
        _exit(programs == 1 ? 0 : 2);
    }
    want_int(waitpid(pid, &status, 0), pid);
    want_int(status, 0);
    iso_close_ctx(t.ctx);
}

struct stacked {
    struct timed t;
    char *stack;
    pthread_t id;
};

static void *handle_on_stack(void *arg)
{
    struct stacked *s = arg;

    iso_expect_signals();
    want_int(s->t.handle(SIGUSR1, SA_ONSTACK), 0);
    want_int(s->t.stack(s->stack, 1 << 16), 0);
    want_int(s->t.create(SIGEV_SIGNAL, SIGUSR1, NULL), 0);
    want_int(s->t.arm(5, 0), 0);
    await(s->t.count, 1);
    want_int(s->t.delete(), 0);
    want_int(s->t.unstack(), 0);
    return NULL;
}

/* sigaltstack(2): a thread's. */
ISO_CASE(handlers_run_on_their_threads_stacks)
{
    struct stacked s[2];

    for (int i = 0; i < 2; i++) {
        s[i].t = timed();
        want(s[i].stack = malloc(1 << 16));
        want_int(pthread_create(&s[i].id, NULL, handle_on_stack, &s[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        want_int(pthread_join(s[i].id, NULL), 0);
        want_int(*s[i].t.count, 1);
        want_int(*s[i].t.on_stack, 1);
        iso_close_ctx(s[i].t.ctx);
        free(s[i].stack);
    }
}

/* ---- many at once ---- */

static void *create_and_delete(void *arg)
{
    struct timed t = timed();

    (void)arg;
    iso_expect_signals();
    want_int(t.handle(SIGUSR1, SA_RESTART), 0);
    for (int i = 1; i <= 100; i++) {
        want_int(t.create(SIGEV_SIGNAL, SIGUSR1, &mark[0]), 0);
        want_int(t.arm(1, 0), 0);
        await(t.count, i);
        want_int(*t.count, i);
        want_int(*t.thread, (pid_t)syscall(SYS_gettid));
        want_int(t.delete(), 0);
    }
    iso_close_ctx(t.ctx);
    return NULL;
}

ISO_CASE(timers_come_and_go_on_many_threads)
{
    pthread_t t[4];

    iso_build(source, "timers.so", "-w");
    for (int i = 0; i < 4; i++)
        want_int(pthread_create(&t[i], NULL, create_and_delete, NULL), 0);
    for (int i = 0; i < 4; i++)
        want_int(pthread_join(t[i], NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_contexts_timers_are_its_own),
        cmocka_unit_test(control_without_actions_of_their_own_the_last_handler_has_it),
        cmocka_unit_test(overruns_are_counted),
        cmocka_unit_test(a_timer_goes_to_the_thread_that_handles_it),
        cmocka_unit_test(waiting_gets_what_the_kernel_says),
        cmocka_unit_test(other_kinds_are_as_ever),
        cmocka_unit_test(closing_deletes_timers),
        cmocka_unit_test(a_child_has_none),
        cmocka_unit_test(a_childs_timer_may_have_the_number_of_one_of_its_parents),
        cmocka_unit_test(handlers_run_on_their_threads_stacks),
        cmocka_unit_test(timers_come_and_go_on_many_threads),
    };

    return cmocka_run_group_tests_name("isolation/context_timers", tests, NULL, NULL);
}
