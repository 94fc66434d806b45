/* What signal handlers of copies may call. */
#define _GNU_SOURCE
#include "tests/support/exti_test.h"

#include <pthread.h>

#include "tests/isolation/build.h"

static _Atomic int no_more_loads, no_more_signals;

static void *load_and_close(void *arg)
{
    while (!no_more_loads) {
        struct exti_ctx *ctx = iso_open(NULL);

        iso_load(ctx, toy("ext_a.so"));
        iso_close_ctx(ctx);
    }
    return arg;
}

static void fork_and_wait(void)
{
    const pid_t pid = fork();

    if (pid == 0)
        _exit(0);
    want(iso_join(pid));
}

static const char prober_source[] =
    "#define _GNU_SOURCE\n"
    "#include <dlfcn.h>\n"
    "#include <pthread.h>\n"
    "#include <signal.h>\n"
    "#include <string.h>\n"
    "volatile sig_atomic_t handled;\n"
    "static void nothing(void *p) { (void)p; }\n"
    "void handle(int s) { Dl_info i; (void)s; if (dladdr((void *)handle, &i)) handled++; }\n"
    "int is_told(const char *name)\n"
    "{ Dl_info i; return dladdr((void *)handle, &i) && strcmp(i.dli_fname, name) == 0; }\n"
    "int use_key(void)\n"
    "{\n"
    "    pthread_key_t k;\n"
    "    return pthread_key_create(&k, nothing) || pthread_key_delete(k);\n"
    "}\n";

static _Atomic pthread_t interrupted;

static void *interrupt_often(void *arg)
{
    while (!no_more_signals) {
        pthread_kill(interrupted, SIGUSR2);
        usleep(20);
    }
    return arg;
}

/* What a profiler or a crash handler does.  The thread is interrupted where it notes a key while
 * another one loads and closes, and then where it forks.  Not both at once: a handler of glibc's
 * own fork that calls dladdr waits for a dlclose that waits for the fork.  Nor in dladdr, of which
 * glibc's waits for itself.  A thread that waits for itself is ended by SIGALRM. */
ISO_CASE(signal_handlers_can_ask_dladdr_at_any_moment)
{
    struct exti_ctx *ctx = iso_open(NULL);
    volatile sig_atomic_t *handled;
    int (*is_told)(const char *), (*use_key)(void);
    struct sigaction action = {.sa_flags = SA_RESTART};
    pthread_t loads, interrupts;
    struct exti_module *m;

    iso_build(prober_source, "prober.so", "");
    m = iso_load(ctx, in_tmp("prober.so"));
    is_told = (int (*)(const char *))iso_sym(m, "is_told");
    use_key = (int (*)(void))iso_sym(m, "use_key");
    want(is_told(in_tmp("prober.so")));
    handled = iso_sym(m, "handled");
    action.sa_handler = (void (*)(int))iso_sym(m, "handle");
    interrupted = pthread_self();
    alarm(600);
    want_int(sigaction(SIGUSR2, &action, NULL), 0);
    want_int(pthread_create(&loads, NULL, load_and_close, NULL), 0);
    want_int(pthread_create(&interrupts, NULL, interrupt_often, NULL), 0);
    while (*handled < 20000)
        want_int(use_key(), 0);
    no_more_loads = 1;
    want_int(pthread_join(loads, NULL), 0);
    while (*handled < 30000)
        fork_and_wait();
    no_more_signals = 1;
    want_int(pthread_join(interrupts, NULL), 0);
    alarm(0);
    want(is_told(in_tmp("prober.so")));
    iso_close_ctx(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signal_handlers_can_ask_dladdr_at_any_moment),
    };

    return cmocka_run_group_tests_name("isolation/signals", tests, NULL, NULL);
}
