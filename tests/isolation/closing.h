/* Contexts that close, and what they say. */
#ifndef TESTS_ISOLATION_CLOSING_H
#define TESTS_ISOLATION_CLOSING_H

#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/isolation/iso.h"

/* Whether the kernel lists a mapping of a file in the folder. */
static inline int is_mapped(const char *dir)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[PATH_MAX + 128];
    int found = 0;

    want(f);
    while (!found && fgets(line, sizeof line, f))
        found = strstr(line, dir) != NULL;
    fclose(f);
    return found;
}

/* ---- closing and its report ----------------------------------------------------------------- */

struct close_report {
    size_t left, count;
    char text[4096]; /* "FILE: MESSAGE" lines */
};

static inline int add_finding(void *user, const struct exti_error *finding)
{
    struct close_report *t = user;
    size_t n = strlen(t->text);

    want_int(finding->code, EXTI_E_BUSY);
    t->count++;
    snprintf(t->text + n, sizeof t->text - n, "%s: %s\n", finding->file, finding->message);
    return 0;
}

static inline struct close_report close_and_report(struct exti_ctx *ctx)
{
    struct close_report t = {.left = 99};
    struct exti_error err = {0};

    want_exti(exti_ctx_close_report(ctx, add_finding, &t, &t.left, &err), 0, &err);
    return t;
}

static inline void close_and_want_unloaded(struct exti_ctx *ctx, const char *dir)
{
    struct close_report t = close_and_report(ctx);

    if (t.count || t.left)
        fprintf(stderr, "left %zu:\n%s", t.left, t.text);
    want_int((long)t.count, 0);
    want_int((long)t.left, 0);
    want(!is_mapped(dir));
}

/* ---- threads of the program ----------------------------------------------------------------- */

/* A thread that calls one function of a module and lives until end_visit. */
struct visitor {
    pthread_t thread;
    int (*run)(int *);
    int value, result;
    pid_t number; /* the thread's in the kernel */
    sem_t has_run, end;
};

static inline void *be_visitor(void *arg)
{
    struct visitor *v = arg;

    v->number = (pid_t)syscall(SYS_gettid);
    v->result = v->run(&v->value);
    sem_post(&v->has_run);
    sem_wait(&v->end);
    return NULL;
}

static inline void visit(struct visitor *v, struct exti_module *m, const char *function)
{
    *v = (struct visitor){.run = (int (*)(int *))iso_sym(m, function)};
    sem_init(&v->has_run, 0, 0);
    sem_init(&v->end, 0, 0);
    want_int(pthread_create(&v->thread, NULL, be_visitor, v), 0);
    sem_wait(&v->has_run);
    want_int(v->result, 0);
}

static inline void end_visit(struct visitor *v)
{
    sem_post(&v->end);
    pthread_join(v->thread, NULL);
}

#endif
