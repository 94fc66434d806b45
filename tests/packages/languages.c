/* Opens the API library of a language in contexts, one after the other, has it take signals and
 * finalises it: languages LANGUAGE LIBRARY TIMES [shared].  Prints what of the host's signals
 * differs afterwards; ends with 0 if SIGTERM then does what the host says.  `shared`: the contexts
 * have the process's signals. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <extisolate.h>

#define SIGNALS 64

static struct exti_module *library;
static volatile sig_atomic_t terminated, children;

static void on_term(int sig, siginfo_t *info, void *context)
{
    (void)sig, (void)info, (void)context;
    terminated++;
}

static void on_child(int sig)
{
    (void)sig;
    children++;
}

static void must(int rc, const struct exti_error *err)
{
    if (!rc)
        return;
    fprintf(stderr, "%s: %s\n", err->file, err->message);
    exit(1);
}

static void find(const char *name, void *out)
{
    struct exti_error err;
    void *address;

    must(exti_symbol(library, name, &address, &err), &err);
    memcpy(out, &address, sizeof address);
}

static void expect(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "%s\n", what);
    exit(1);
}

/* ---- the languages ---- */

static void ruby(void)
{
    int (*setup)(void), (*cleanup)(int), state;
    void (*init_stack)(volatile void *);
    uintptr_t (*eval)(const char *, int *);
    volatile uintptr_t here;

    find("ruby_init_stack", &init_stack);
    find("ruby_setup", &setup);
    find("rb_eval_string_protect", &eval);
    find("ruby_cleanup", &cleanup);
    init_stack(&here);
    expect(setup() == 0, "ruby_setup failed");
    eval("$got = 0; %w(TERM USR1 CHLD WINCH).each { |s| trap(s) { $got += 1 } }\n"
         "Process.kill(:USR1, Process.pid); sleep 0.001 until $got == 1\n"
         "Thread.new { 1 + 1 }.join; raise unless Thread.list.size == 1\n",
         &state);
    expect(state == 0, "Ruby raised an exception");
    expect(cleanup(0) == 0, "ruby_cleanup failed");
}

static void php(void)
{
    int (*init)(int, char **), (*eval)(const char *, void *, const char *);
    void (*end)(void);
    char name[] = "languages", *argv[] = {name, NULL};

    find("php_embed_init", &init);
    find("zend_eval_string", &eval);
    find("php_embed_shutdown", &end);
    expect(init(1, argv) == 0, "php_embed_init failed");
    expect(eval("if (array_sum(range(1, 100)) != 5050) exit(1); set_time_limit(30);", NULL,
                "host") == 0,
           "PHP failed");
    end();
}

static void python(void)
{
    void (*init)(int);
    int (*run)(const char *), (*end)(void);

    find("Py_InitializeEx", &init);
    find("PyRun_SimpleString", &run);
    find("Py_FinalizeEx", &end);
    init(1);
    expect(run("import faulthandler, os, signal\n"
               "got = []\n"
               "for s in signal.SIGTERM, signal.SIGUSR1, signal.SIGCHLD:\n"
               "    signal.signal(s, lambda *a: got.append(a))\n"
               "faulthandler.enable(open(os.devnull, 'w'))\n"
               "faulthandler.register(signal.SIGUSR2, open(os.devnull, 'w'))\n"
               "os.kill(os.getpid(), signal.SIGUSR1)\n"
               "assert len(got) == 1\n") == 0,
           "CPython raised an exception");
    expect(end() == 0, "Py_FinalizeEx failed");
}

static const struct language {
    const char *name;
    void (*use)(void);
} languages[] = {{"ruby", ruby}, {"php", php}, {"python", python}};

/* ---- the host's signals ---- */

static void read_signals(struct sigaction list[SIGNALS])
{
    memset(list, 0, SIGNALS * sizeof *list);
    for (int sig = 1; sig < SIGNALS; sig++)
        sigaction(sig, NULL, &list[sig]); /* the C library keeps two for itself */
}

static int is_hosts(const struct sigaction *a)
{
    return a->sa_handler == SIG_DFL || a->sa_handler == SIG_IGN || a->sa_sigaction == on_term ||
           a->sa_handler == on_child;
}

static size_t print_changed(const struct sigaction before[SIGNALS])
{
    struct sigaction now[SIGNALS];
    size_t changed = 0;

    read_signals(now);
    for (int sig = 1; sig < SIGNALS; sig++)
        if (!is_hosts(&now[sig]) || now[sig].sa_handler != before[sig].sa_handler ||
            now[sig].sa_flags != before[sig].sa_flags ||
            memcmp(&now[sig].sa_mask, &before[sig].sa_mask, SIGNALS / 8) != 0) {
            printf("signal %d: another action\n", sig);
            changed++;
        }
    return changed;
}

static void take_signals(void)
{
    struct sigaction term = {.sa_sigaction = on_term, .sa_flags = SA_SIGINFO | SA_RESTART},
                     child = {.sa_handler = on_child, .sa_flags = SA_NOCLDSTOP};
    struct sigaction now[SIGNALS];

    /* The kernel tells flags of an action that was set once. */
    read_signals(now);
    for (int sig = 1; sig < SIGNALS; sig++)
        sigaction(sig, &now[sig], NULL);
    sigaddset(&term.sa_mask, SIGUSR2);
    sigaction(SIGTERM, &term, NULL);
    sigaction(SIGCHLD, &child, NULL);
}

/* ---- contexts ---- */

static int print_finding(void *user, const struct exti_error *finding)
{
    (void)user;
    printf("left: %s: %s\n", finding->file, finding->message);
    return 0;
}

static void use_context(const struct language *l, const char *path, uint32_t flags)
{
    struct exti_ctx_opts opts = {.size = sizeof opts, .api_library = path, .flags = flags};
    struct exti_error err;
    struct exti_ctx *ctx;
    void *outside;
    size_t left;

    must(exti_ctx_open(&ctx, &opts, &err), &err);
    must(exti_api(ctx, &library, &err), &err);
    outside = exti_ctx_enter(ctx);
    l->use();
    exti_ctx_leave(outside);
    must(exti_ctx_close_report(ctx, print_finding, NULL, &left, &err), &err);
    if (left)
        printf("left: %zu files\n", left);
}

int main(int argc, char **argv)
{
    struct sigaction before[SIGNALS];
    const struct language *l = languages;
    const struct language *end = languages + sizeof languages / sizeof *languages;
    size_t changed = 0;

    if (argc < 4)
        return 2;
    while (l < end && strcmp(l->name, argv[1]) != 0)
        l++;
    if (l == end)
        return 2;
    take_signals();
    read_signals(before);
    for (int i = 0; i < atoi(argv[3]); i++) {
        use_context(l, argv[2], argc > 4 ? EXTI_CTX_PROCESS_SIGNALS : 0);
        changed += print_changed(before);
    }
    if (changed)
        return 1;
    kill(getpid(), SIGTERM);
    raise(SIGCHLD);
    return fflush(stdout) != 0 || terminated != 1 || children < 1;
}
