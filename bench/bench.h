/* Measurements: each file measures one thing and adds its rows to the table. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof *(a))

/* The files to measure, from environment variables set by bench/run.sh. */
struct bench {
    const char *program;                 /* the extisolate program */
    const char *extension;               /* numpy's _multiarray_umath */
    const char *api;                     /* the libpython that it belongs to */
    const char *python;                  /* the interpreter that both belong to */
    const char *dir;                     /* for scratch files */
    const char *memory;                  /* likewise, on a memory file system if there is one */
    const char *delvewheel, *pe_library; /* a Python with delvewheel, and python311.dll; or NULL */
    bool quick;                          /* fewer repetitions */
};

void bench_copy(const struct bench *b);
void bench_cli(const struct bench *b);
void bench_parallel(const struct bench *b);
void bench_memory(const struct bench *b);
void bench_macho(const struct bench *b);
void bench_pe(const struct bench *b);
void bench_tree(const struct bench *b);
void bench_embed(const struct bench *b);
void bench_calls(const struct bench *b);
void bench_links(const struct bench *b);

/* Repeated measurements of one thing. */
struct samples {
    double v[1024];
    size_t n;
};
void add_sample(struct samples *s, double v);
double median(struct samples *s);         /* sorts */
void keep_least(double *least, double v); /* *least is 0 before the first */

/* Adds a line to the table.  A limit of 0 claims nothing. */
void add_row(const char *section, const char *what, double value, const char *unit);
void add_claim(const char *section, const char *what, double value, const char *unit, bool at_most,
               double limit);
void add_skip(const char *section, const char *reason);

/* Between the first and the last a second thread answers whatever is handed over to it. */
void hand_over_begin(void);
void hand_over(void); /* and back */
void hand_over_end(void);

double now(void);                                       /* seconds */
char *path_in(const struct bench *b, const char *name); /* the caller frees it */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
struct exti_error;
void must(int rc, const struct exti_error *err); /* dies of a failed call of either library */

/* Casts a string for an argument vector: exec does not change its strings, but takes no const. */
static inline char *arg(const char *s)
{
    return (char *)(uintptr_t)s;
}

/* Runs a program with its output thrown away.  Dies if it fails. */
struct cost {
    double wall, cpu; /* seconds; cpu is user and system time */
};
struct cost run(char *const argv[]);
void remove_tree(const char *path);

#endif
