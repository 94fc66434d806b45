/* Calls of the C library that are a context's own against the same calls in the program. */
#define _GNU_SOURCE
#include "bench/bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <extisolate.h>

#define SECTION "calls of the C library that are a context's own, against the program's"
#define COUNT 2000
#define ROUNDS 200

typedef double (*timer)(int which, int count);

static timer load_plain(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *found;
    timer t;

    found = library ? dlsym(library, "time_calls") : NULL;
    if (!found)
        die("%s", dlerror());
    memcpy(&t, &found, sizeof t);
    return t;
}

static timer load_copy(struct exti_ctx *ctx, const char *path)
{
    struct exti_module *m;
    struct exti_error err;
    void *found;
    timer t;

    must(exti_load(ctx, path, &m, &err), &err);
    must(exti_symbol(m, "time_calls", &found, &err), &err);
    memcpy(&t, &found, sizeof t);
    return t;
}

void bench_calls(const struct bench *b)
{
    static const struct {
        const char *what;
        double goal;
    } calls[] = {
        {"getenv of a variable", 1.1},  {"getenv of none", 1.1},
        {"write of a byte", 1.1},       {"localtime", 1.5},
        {"raise, with a handler", 1.3},
    };
    struct exti_ctx_opts opts = {.size = sizeof opts, .api_library = b->api};
    char *path = path_in(b, "calls.so");
    const timer plain = load_plain(path);
    double theirs[ARRAY_SIZE(calls)] = {0}, ours[ARRAY_SIZE(calls)] = {0};
    struct exti_error err;
    struct exti_ctx *ctx;
    timer copy;

    must(exti_ctx_open(&ctx, &opts, &err), &err);
    copy = load_copy(ctx, path);
    for (int round = 0; round < (b->quick ? ROUNDS / 10 : ROUNDS); round++)
        for (int i = 0; i < (int)ARRAY_SIZE(calls); i++) {
            keep_least(&theirs[i], plain(i, COUNT));
            keep_least(&ours[i], copy(i, COUNT));
        }
    for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
        add_claim(SECTION, calls[i].what, ours[i] / theirs[i], "x", true, calls[i].goal);
    must(exti_ctx_close(ctx, &err), &err);
    free(path);
}
