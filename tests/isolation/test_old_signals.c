/* The older functions for signals of a copy: their actions are its context's. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "tests/isolation/build.h"

static const char source[] =
    "#define _GNU_SOURCE\n"
    "#include <errno.h>\n"
    "#include <signal.h>\n"
    "volatile sig_atomic_t count;\n"
    "static void handle(int s) { (void)s; count++; }\n"
    "static int number_of(void (*h)(int))\n"
    "{\n"
    "    return h == SIG_ERR ? -1 : h == SIG_DFL ? 0 : h == SIG_IGN ? 1 : h == handle ? 2 :\n"
    "           h == SIG_HOLD ? 3 : 4;\n"
    "}\n"
    "int t_set(int s) { return number_of(sigset(s, handle)); }\n"
    "int t_hold(int s) { return number_of(sigset(s, SIG_HOLD)); }\n"
    "int t_ignore(int s) { return sigignore(s); }\n"
    "int t_interrupt(int s, int interrupts) { return siginterrupt(s, interrupts); }\n"
    "int t_signal(int s) { return number_of(signal(s, handle)); }\n"
    "int t_wrong(int s) { errno = 0; return signal(s, SIG_ERR) == SIG_ERR ? errno : -1; }\n"
    "int t_restarts(int s)\n"
    "{\n"
    "    struct sigaction a;\n"
    "    return sigaction(s, 0, &a) ? -1 : (a.sa_flags & SA_RESTART) != 0;\n"
    "}\n"
    "int t_has(int s) { struct sigaction a; return sigaction(s, 0, &a) ? -1 : "
    "number_of(a.sa_handler); }\n"
    "int t_raise(int s) { return raise(s); }\n";

struct old_signals {
    struct exti_ctx *ctx;
    int (*set)(int), (*hold)(int), (*ignore)(int), (*interrupt)(int, int), (*restarts)(int);
    int (*signal)(int), (*wrong)(int), (*has)(int), (*raise)(int);
    volatile sig_atomic_t *count;
};

static struct old_signals open_signals(uint32_t flags)
{
    struct exti_ctx_opts opts = iso_opts(NULL, NULL);
    struct old_signals s = {0};
    struct exti_module *m;

    opts.flags |= flags;
    if (!file_exists(in_tmp("old.so")))
        iso_build(source, "old.so", "-w");
    s.ctx = iso_open_opts(&opts);
    m = iso_load(s.ctx, in_tmp("old.so"));
    *(void **)&s.set = iso_sym(m, "t_set");
    *(void **)&s.hold = iso_sym(m, "t_hold");
    *(void **)&s.ignore = iso_sym(m, "t_ignore");
    *(void **)&s.interrupt = iso_sym(m, "t_interrupt");
    *(void **)&s.signal = iso_sym(m, "t_signal");
    *(void **)&s.wrong = iso_sym(m, "t_wrong");
    *(void **)&s.restarts = iso_sym(m, "t_restarts");
    *(void **)&s.has = iso_sym(m, "t_has");
    *(void **)&s.raise = iso_sym(m, "t_raise");
    s.count = iso_sym(m, "count");
    return s;
}

static struct sigaction program_action(int sig)
{
    struct sigaction a;

    want_int(sigaction(sig, NULL, &a), 0);
    return a;
}

/* Under the thread sanitizer a handler runs at the next call that waits. */
static void want_count(const struct old_signals *s, int n)
{
    for (int i = 0; i < 10000 && *s->count < n; i++)
        usleep(1000);
    want_int(*s->count, n);
}

/* As the functions do in a program without contexts, which is the control. */
static void use_signals(const struct old_signals *s)
{
    iso_expect_signals();
    want_int(s->set(SIGUSR1), 0);
    want_int(s->has(SIGUSR1), 2);
    want_int(s->raise(SIGUSR1), 0);
    want_count(s, 1);
    want_int(s->hold(SIGUSR1), 2);
    want_int(s->raise(SIGUSR1), 0);
    want_count(s, 1);
    want_int(s->set(SIGUSR1), 3);
    want_count(s, 2);
    want_int(s->ignore(SIGUSR2), 0);
    want_int(s->has(SIGUSR2), 1);
    want_int(s->wrong(SIGUSR2), EINVAL);
    want_int(s->has(SIGUSR2), 1);
    want_int(s->set(0), -1);
    want_int(s->ignore(SIGSTOP), -1);
}

/* signal(2) goes by what siginterrupt(3) was told. */
static void interrupt_signals(const struct old_signals *s)
{
    want_int(s->interrupt(SIGUSR1, 0), 0);
    want_int(s->restarts(SIGUSR1), 1);
    want_int(s->interrupt(SIGUSR1, 1), 0);
    want_int(s->restarts(SIGUSR1), 0);
    want_int(s->signal(SIGUSR1), 2);
    want_int(s->restarts(SIGUSR1), 0);
    want_int(s->interrupt(SIGUSR1, 0), 0);
    want_int(s->signal(SIGUSR1), 2);
    want_int(s->restarts(SIGUSR1), 1);
    want_int(s->interrupt(SIGUSR2, 1), 0);
}

ISO_CASE(actions_of_older_functions_are_each_contexts_own)
{
    struct old_signals a = open_signals(0), b = open_signals(0);

    use_signals(&a);
    interrupt_signals(&a);
    want_int(b.has(SIGUSR1), 0);
    want_int(b.has(SIGUSR2), 0);
    want_int(b.signal(SIGUSR2), 0);
    want_int(b.restarts(SIGUSR2), 1);
    use_signals(&b);
    want_int(*a.count, 2);
    iso_close_ctx(a.ctx);
    iso_close_ctx(b.ctx);
    want(program_action(SIGUSR1).sa_handler == SIG_DFL);
    want(program_action(SIGUSR2).sa_handler == SIG_DFL);
}

ISO_CASE(control_a_context_without_signals_has_the_programs)
{
    struct old_signals a = open_signals(EXTI_CTX_PROCESS_SIGNALS);

    use_signals(&a);
#ifndef __SANITIZE_THREAD__ /* which does not see what siginterrupt sets */
    interrupt_signals(&a);
#endif
    want(program_action(SIGUSR2).sa_handler == SIG_IGN);
    want_int(a.ignore(SIGUSR1), 0);
    iso_close_ctx(a.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actions_of_older_functions_are_each_contexts_own),
        cmocka_unit_test(control_a_context_without_signals_has_the_programs),
    };

    return cmocka_run_group_tests_name("old_signals", tests, NULL, NULL);
}
