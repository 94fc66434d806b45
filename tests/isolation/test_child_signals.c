/* Signals that children of contexts send: each is its context's, whoever takes it first. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "tests/isolation/build.h"

static const char source[] =
    "#define _GNU_SOURCE\n"
    "#include <signal.h>\n"
    "#include <sys/wait.h>\n"
    "#include <unistd.h>\n"
    "volatile sig_atomic_t handled, reaped;\n"
    "static void handle(int sig) { (void)sig; handled++; }\n"
    "static void reap(int sig) { (void)sig; while (waitpid(-1, 0, WNOHANG) > 0) reaped++; }\n"
    "int t_set(int sig, int on) { return signal(sig, on ? handle : SIG_DFL) == SIG_ERR; }\n"
    "int t_fork(void) { int pid = fork(); if (!pid) _exit(0); return pid; }\n"
    "int t_wait(void) { return waitpid(-1, 0, 0); }\n"
    "int t_churn(void) { int pid = t_fork(); return waitpid(pid, 0, 0) != pid; }\n"
    /* The child sends at once, and the default is back before the next. */
    "int t_send(int sig)\n"
    "{\n"
    "    int pid;\n"
    "    signal(sig, handle);\n"
    "    if (!(pid = fork())) { kill(getppid(), sig); _exit(0); }\n"
    "    waitpid(pid, 0, 0);\n"
    "    return signal(sig, SIG_DFL) == SIG_ERR;\n"
    "}\n"
    /* How often the child's signal had been handled when its stop was waited for. */
    "int t_stop(int sig)\n"
    "{\n"
    "    int pid, status, before = handled, after;\n"
    "    signal(sig, handle);\n"
    "    if (!(pid = fork())) { kill(getppid(), sig); raise(SIGSTOP); _exit(0); }\n"
    "    waitpid(pid, &status, WUNTRACED);\n"
    "    after = handled;\n"
    "    kill(pid, SIGKILL);\n"
    "    waitpid(pid, &status, 0);\n"
    "    return after - before;\n"
    "}\n"
    "int t_reap(int n)\n"
    "{\n"
    "    signal(SIGCHLD, reap);\n"
    "    for (int i = 0; i < n; i++) {\n"
    "        if (t_fork() < 0) return -1;\n"
    "        for (int ms = 0; ms < 10000 && reaped <= i; ms++) usleep(1000);\n"
    "    }\n"
    "    signal(SIGCHLD, SIG_DFL);\n"
    "    return reaped;\n"
    "}\n";

struct sender {
    struct exti_ctx *ctx;
    int (*set)(int sig, int on), (*fork)(void), (*wait)(void), (*churn)(void);
    int (*send)(int sig), (*stop_child)(int sig), (*reap)(int n);
    volatile sig_atomic_t *handled;
};

/* How many contexts a signal was to end. */
static atomic_int ends;

static void note_end(void *user, struct exti_ctx *ctx, int sig)
{
    (void)user, (void)ctx, (void)sig;
    ends++;
}

static struct sender open_sender(void)
{
    const struct exti_hooks hooks = {.size = sizeof hooks, .end = note_end};
    struct exti_ctx_opts o = iso_opts(NULL, NULL);
    struct sender s = {0};
    struct exti_module *m;

    o.hooks = &hooks;
    if (!file_exists(in_tmp("sender.so")))
        iso_build(source, "sender.so", "-w");
    s.ctx = iso_open_opts(&o);
    m = iso_load(s.ctx, in_tmp("sender.so"));
    *(void **)&s.set = iso_sym(m, "t_set");
    *(void **)&s.fork = iso_sym(m, "t_fork");
    *(void **)&s.wait = iso_sym(m, "t_wait");
    *(void **)&s.churn = iso_sym(m, "t_churn");
    *(void **)&s.send = iso_sym(m, "t_send");
    *(void **)&s.stop_child = iso_sym(m, "t_stop");
    *(void **)&s.reap = iso_sym(m, "t_reap");
    *(void **)&s.handled = iso_sym(m, "handled");
    return s;
}

enum { CONTEXTS = 4, TIMES = 60 };

static void *send_often(void *arg)
{
    struct sender *s = arg;

    iso_expect_signals();
    for (int i = 0; i < TIMES; i++)
        want_int(s->send(SIGRTMIN + 3), 0);
    return NULL;
}

/* A context whose action is the default, as it is between two children, is ended by no other's. */
ISO_CASE(children_of_several_contexts_signal_at_once)
{
    struct sender s[CONTEXTS];
    pthread_t t[CONTEXTS];

    for (int i = 0; i < CONTEXTS; i++) {
        s[i] = open_sender();
        want_int(s[i].set(SIGUSR2, 1), 0);
    }
    for (int i = 0; i < CONTEXTS; i++)
        want_int(pthread_create(&t[i], NULL, send_often, &s[i]), 0);
    for (int i = 0; i < CONTEXTS; i++)
        want_int(pthread_join(t[i], NULL), 0);
    want_int(ends, 0);
    for (int i = 0; i < CONTEXTS; i++) {
#ifndef __SANITIZE_THREAD__ /* which lets signals wait for longer than the action stays */
        /* One may come late, and is not handled then. */
        want(*s[i].handled > TIMES / 2);
#endif
        iso_close_ctx(s[i].ctx);
    }
}

static atomic_bool churns;

static void *churn(void *arg)
{
    struct sender *s = arg;

    while (churns)
        want_int(s->churn(), 0);
    return NULL;
}

/* Nobody waits for ever to learn whose child it is. */
ISO_CASE(a_child_of_the_program_is_no_contexts)
{
    struct sender a = open_sender(), b = open_sender();
    pthread_t t[3];

    want_int(b.set(SIGUSR1, 1), 0);
    churns = true;
    for (int i = 0; i < 3; i++)
        want_int(pthread_create(&t[i], NULL, churn, &a), 0);
    for (int n = 1; n <= 10; n++) {
        const pid_t pid = fork();

        if (pid == 0) {
            kill(getppid(), SIGUSR1);
            _exit(0);
        }
        for (int ms = 0; ms < 10000 && *b.handled < n; ms++)
            usleep(1000);
        want_int(*b.handled, n);
        want_int(waitpid(pid, NULL, 0), pid);
    }
    churns = false;
    for (int i = 0; i < 3; i++)
        want_int(pthread_join(t[i], NULL), 0);
    want_int(*a.handled, 0);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

/* Linux with CONFIG_CHECKPOINT_RESTORE, as root. */
static bool set_last_number(pid_t pid)
{
    const int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
    bool done;

    if (fd < 0)
        return false;
    done = dprintf(fd, "%d", pid) > 0;
    close(fd);
    return done;
}

ISO_CASE(a_number_is_its_last_childs)
{
    struct sender a = open_sender(), b = open_sender();

    for (int tries = 0; tries < 100; tries++) {
        const pid_t first = a.fork();
        pid_t second;

        /* Of which the context knows nothing. */
        want_int(waitpid(first, NULL, 0), first);
        if (!set_last_number(first - 1))
            break;
        second = b.fork();
        want_int(b.wait(), second);
        if (second == first)
            break;
    }
    want_int(a.wait(), -1);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
}

ISO_CASE(a_handler_finds_the_child_that_has_ended)
{
    struct sender a = open_sender();

    want_int(a.reap(50), 50);
    iso_close_ctx(a.ctx);
}

#ifndef __SANITIZE_THREAD__ /* which lets signals wait for the end of waitpid */
static void *stop_often(void *arg)
{
    struct sender *s = arg;

    for (int i = 0; i < 20; i++)
        want_int(s->stop_child(SIGUSR1), 1);
    return NULL;
}

ISO_CASE(what_a_child_that_stops_has_sent_is_handled)
{
    struct sender a = open_sender();
    pthread_t t;

    want_int(pthread_create(&t, NULL, stop_often, &a), 0);
    want_int(pthread_join(t, NULL), 0);
    iso_close_ctx(a.ctx);
}
#endif

static atomic_bool begins, came_through;

static void *set_when_cancelled(void *arg)
{
    struct sender *s = arg;

    while (!begins)
        continue;
    for (int i = 0; i < 1000; i++)
        want_int(s->set(SIGUSR1, 1), 0);
    came_through = true;
    return NULL;
}

/* POSIX: sigaction(2) is none. */
ISO_CASE(an_action_is_no_cancellation_point)
{
    struct sender a = open_sender();
    pthread_t t;

    want_int(pthread_create(&t, NULL, set_when_cancelled, &a), 0);
    want_int(pthread_cancel(t), 0);
    begins = true;
    want_int(pthread_join(t, NULL), 0);
    want(came_through);
    iso_close_ctx(a.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_of_several_contexts_signal_at_once),
        cmocka_unit_test(a_child_of_the_program_is_no_contexts),
        cmocka_unit_test(a_number_is_its_last_childs),
        cmocka_unit_test(a_handler_finds_the_child_that_has_ended),
#ifndef __SANITIZE_THREAD__
        cmocka_unit_test(what_a_child_that_stops_has_sent_is_handled),
#endif
        cmocka_unit_test(an_action_is_no_cancellation_point),
    };

    return cmocka_run_group_tests_name("isolation/child_signals", tests, NULL, NULL);
}
