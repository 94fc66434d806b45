/* Calls of the C library that are a context's own against the same calls in the program. */
#define _GNU_SOURCE
#include "bench/bench.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <extisolate.h>

#define SECTION "calls of the C library that are a context's own, against the program's"
#define COUNT 2000
#define ROUNDS 200

struct timers {
    double (*calls)(int which, int count);
    double (*signals)(void (*send)(int sig), int count);
};

static void load_plain(struct timers *t, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *calls = library ? dlsym(library, "time_calls") : NULL,
         *signals = library ? dlsym(library, "time_signals") : NULL;

    if (!calls || !signals)
        die("%s", dlerror());
    memcpy(&t->calls, &calls, sizeof t->calls);
    memcpy(&t->signals, &signals, sizeof t->signals);
}

static void load_copy(struct timers *t, struct exti_ctx *ctx, const char *path)
{
    struct exti_module *m;
    struct exti_error err;
    void *calls, *signals;

    must(exti_load(ctx, path, &m, &err), &err);
    must(exti_symbol(m, "time_calls", &calls, &err), &err);
    must(exti_symbol(m, "time_signals", &signals, &err), &err);
    memcpy(&t->calls, &calls, sizeof t->calls);
    memcpy(&t->signals, &signals, sizeof t->signals);
}

/* As another process would: it is the program's call, not the context's. */
static void send_from_outside(int sig)
{
    kill(getpid(), sig);
}

static double time_hand_overs(int count)
{
    const double begin = now();

    for (int i = 0; i < count; i++)
        hand_over();
    return now() - begin;
}

/* Of the program alone first, which has the signal to itself until the context has a handler. */
static void bench_signals(const struct timers *plain, const struct timers *copy, int rounds)
{
    double theirs = 0, ours = 0, bare = 0;

    for (int i = 0; i < rounds; i++)
        keep_least(&theirs, plain->signals(send_from_outside, COUNT));
    signal(SIGUSR2, SIG_DFL);
    hand_over_begin();
    for (int i = 0; i < rounds; i++) {
        keep_least(&ours, copy->signals(send_from_outside, COUNT));
        keep_least(&bare, time_hand_overs(COUNT));
    }
    hand_over_end();
    add_row(SECTION, "a signal from outside, to the program", theirs / COUNT * 1e6, "us");
    add_row(SECTION, "the same to a context", ours / COUNT * 1e6, "us");
    add_claim(SECTION, "what that takes more, against a hand-over to a thread",
              (ours - theirs) / (bare / 2), "x", true, 1);
}

void bench_calls(const struct bench *b)
{
    static const struct {
        const char *what;
        double goal;
    } calls[] = {
        {"getenv of a variable", 1.1},  {"getenv of none", 1.1},
        {"write of a byte", 1.1},       {"localtime", 1.5},
        {"raise, with a handler", 1.3}, {"pthread_getspecific", 2},
        {"pthread_setspecific", 2},
    };
    struct exti_ctx_opts opts = {.size = sizeof opts, .api_library = b->api};
    char *path = path_in(b, "calls.so");
    double theirs[ARRAY_SIZE(calls)] = {0}, ours[ARRAY_SIZE(calls)] = {0};
    struct exti_error err;
    struct exti_ctx *ctx;
    struct timers plain, copy;
    const int rounds = b->quick ? ROUNDS / 10 : ROUNDS;

    must(exti_ctx_open(&ctx, &opts, &err), &err);
    load_plain(&plain, path);
    load_copy(&copy, ctx, path);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < (int)ARRAY_SIZE(calls); i++) {
            keep_least(&theirs[i], plain.calls(i, COUNT));
            keep_least(&ours[i], copy.calls(i, COUNT));
        }
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        add_claim(SECTION, calls[i].what, ours[i] / theirs[i], "x", true, calls[i].goal);
    bench_signals(&plain, &copy, rounds / 4);
    must(exti_ctx_close(ctx, &err), &err);
    free(path);
}
