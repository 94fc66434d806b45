/* Runs phases over many files in worker processes, with one record per file in shared memory. */
#ifndef TESTS_CORPUS_CORPUS_H
#define TESTS_CORPUS_CORPUS_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <extisolate.h>

enum { CORPUS_MAX = 4096, CORPUS_WORKERS = 2 };

struct corpus_file {
    char path[512], copy[512];
    int copied, original_loads;
    int failed;      /* in the current phase */
    char text[1024]; /* the reason */
};

struct corpus {
    struct corpus_file files[CORPUS_MAX];
    size_t count;
    _Atomic size_t next;    /* of the current phase */
    _Atomic size_t checked; /* files examined */
    int failures;           /* phases that failed */
};

static struct corpus *corpus;

__attribute__((format(printf, 2, 3))) static inline int corpus_fail(struct corpus_file *f,
                                                                    const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
    f->failed = 1;
    return 1;
}

static inline double corpus_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline void corpus_start(void)
{
    corpus = mmap(NULL, sizeof *corpus, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (corpus == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
}

/* Adds the paths that `command` prints, one per line. */
static inline void corpus_add(const char *command)
{
    FILE *f = popen(command, "r");
    char line[512];

    while (f && corpus->count < CORPUS_MAX && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (line[0])
            strcpy(corpus->files[corpus->count++].path, line);
    }
    if (f)
        pclose(f);
}

/* Ends a phase: prints one line for all its files, and a comment for each failed file. */
static inline void corpus_report(const char *phase, double began)
{
    size_t failed = 0;

    for (size_t i = 0; i < corpus->count; i++) {
        struct corpus_file *f = &corpus->files[i];

        if (!f->failed)
            continue;
        if (failed++ < 20)
            printf("# %s: %s: %s\n", phase, f->path, f->text);
        f->failed = 0;
        f->text[0] = 0;
    }
    printf("%s %s (%zu files, %zu failed, %.1f s)\n", failed ? "not ok" : "ok", phase,
           (size_t)corpus->checked, failed, corpus_now() - began);
    fflush(stdout);
    corpus->failures += failed > 0;
}

static inline void corpus_work(void (*prepare)(void), void (*each)(struct corpus_file *))
{
    size_t i;

    if (prepare)
        prepare();
    while ((i = corpus->next++) < corpus->count) {
        corpus->checked++;
        each(&corpus->files[i]);
    }
}

/* Calls `each` for every file, in a few processes that each call `prepare` first. */
static inline void corpus_phase(const char *phase, void (*prepare)(void),
                                void (*each)(struct corpus_file *))
{
    double began = corpus_now();
    int status, bad = 0;

    fflush(NULL);
    corpus->next = corpus->checked = 0;
    for (int i = 0; i < CORPUS_WORKERS; i++) {
        if (fork() == 0) {
            corpus_work(prepare, each);
            fflush(NULL);
            _exit(0);
        }
    }
    while (wait(&status) > 0)
        bad |= status != 0;
    if (bad) {
        printf("not ok %s: a worker ended with status %d\n", phase, status);
        corpus->failures++;
    }
    corpus_report(phase, began);
}

/* Calls `body` in its own process, to contain its loads, crashes and hangs.  Returns non-zero
 * unless the process ends with 0. */
static inline int corpus_isolated(struct corpus_file *f, int (*body)(struct corpus_file *))
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        alarm(1200);
        _exit(body(f) ? 1 : 0);
    }
    while (waitpid(pid, &status, 0) < 0)
        ;
    if (WIFSIGNALED(status))
        corpus_fail(f, "died of signal %d", WTERMSIG(status));
    return status;
}

static inline const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

#endif
