/* One copy of a large DLL, compared with a plain copy; and with delvewheel, which also renames
 * imports, on the same files with the same new names. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include <extisolate.h>

#define COPY "one copy of a 20 MB DLL, in process"
#define IN_PROCESS "imports of real .pyd files renamed, in process"
#define PROGRAMS "imports of real .pyd files renamed, whole programs"
#define MOST_JOBS 128
#define MOST_NAMES 4

static void copy_dll(const char *from, const char *to)
{
    static char buf[1 << 18];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0777);
    ssize_t n;

    if (in < 0 || out < 0)
        die("cannot copy %s: %s", from, strerror(errno));
    while ((n = read(in, buf, sizeof buf)) > 0) {
        if (write(out, buf, (size_t)n) != n)
            die("cannot write %s: %s", to, strerror(errno));
    }
    close(in);
    close(out);
}

static void rewrite_dll(const char *from, const char *to, const char *id,
                        const struct exti_needed *needed, size_t count)
{
    const struct exti_rewrite_opts opts = {
        .size = sizeof opts, .id = id, .needed = needed, .needed_count = count};
    struct exti_error err;

    if (exti_rewrite(from, to, &opts, &err))
        die("%s: %s", err.file, err.message);
}

static void copy_large(const struct bench *b)
{
    static const struct exti_needed needed = {"python311.dll", "pab3cd9ef.dll", EXTI_NEEDED_LAST};
    static struct samples plain, rewritten;
    char *from = path_in(b, "large.pyd"), *to = path_in(b, "out.pyd");

    if (access(from, R_OK) != 0) {
        add_skip(COPY, "clang-16 and lld-link-16, which build it, are not there");
        return;
    }
    for (int i = 0; i < (b->quick ? 5 : 60); i++) {
        double start = now();

        copy_dll(from, to);
        add_sample(&plain, now() - start);
        unlink(to);
        start = now();
        rewrite_dll(from, to, "large.ab3cd9ef-k6a49kmw.pyd", &needed, 1);
        add_sample(&rewritten, now() - start);
        unlink(to);
    }
    add_row(COPY, "plain copy, read and write", median(&plain) * 1e3, "ms");
    add_row(COPY, "exti_rewrite", median(&rewritten) * 1e3, "ms");
    add_claim(COPY, "exti_rewrite against two plain copies",
              median(&rewritten) / (2 * median(&plain)), "x", true, 1);
    free(from);
    free(to);
}

/* ---- against delvewheel ---------------------------------------------------------------------- */

struct job {
    char *source, *copy;
    struct exti_needed needed[MOST_NAMES];
    size_t count;
    struct samples own, other;
};
static struct job jobs[MOST_JOBS];
static size_t job_count;

static char *cut_field(char *s, const char *at)
{
    char *end = s + strcspn(s, at);

    if (*end)
        *end++ = 0;
    return end;
}

/* Reads lines of four columns: source, copy, an empty one, and FROM=TO pairs separated by |. */
static void read_jobs(const char *path)
{
    FILE *f = fopen(path, "r");
    char *line = NULL, *names;
    size_t cap = 0;

    if (!f)
        die("cannot open %s: %s", path, strerror(errno));
    while (getline(&line, &cap, f) > 0 && job_count < MOST_JOBS) {
        struct job *j = &jobs[job_count++];

        j->source = strdup(line);
        j->copy = cut_field(j->source, "\t\n");
        names = cut_field(cut_field(j->copy, "\t\n"), "\t\n");
        while (*names && j->count < MOST_NAMES) {
            struct exti_needed *n = &j->needed[j->count++];

            n->from = names;
            names = cut_field(names, "|\n");
            n->to = cut_field(arg(n->from), "=");
        }
    }
    free(line);
    fclose(f);
}

/* Runs delvewheel, which prints the time for each file, without the time for copying it first. */
static void by_delvewheel(const char *command)
{
    FILE *f = popen(command, "r");
    char *line = NULL, *took;
    size_t cap = 0, i = 0;

    if (!f)
        die("cannot run %s: %s", command, strerror(errno));
    for (; i < job_count && getline(&line, &cap, f) > 0; i++) {
        took = strrchr(line, '\t');
        if (strncmp(line, "made\t", 5) != 0 || !took)
            die("delvewheel: %s", line);
        add_sample(&jobs[i].other, strtod(took, NULL) / 1e6);
    }
    if (pclose(f) != 0 || i != job_count)
        die("'%s' did %zu of %zu files", command, i, job_count);
    free(line);
}

static void in_process(const struct bench *b, const char *list)
{
    double own = 0, other = 0;
    char *command;

    if (asprintf(&command, "'%s' tests/pe_corpus/delvewheel.py <'%s'", b->delvewheel, list) < 0)
        die("out of memory");
    for (int round = 0; round < (b->quick ? 1 : 5); round++) {
        by_delvewheel(command);
        for (size_t i = 0; i < job_count; i++) {
            double start;

            unlink(jobs[i].copy); /* by delvewheel */
            start = now();
            rewrite_dll(jobs[i].source, jobs[i].copy, NULL, jobs[i].needed, jobs[i].count);
            add_sample(&jobs[i].own, now() - start);
            unlink(jobs[i].copy);
        }
    }
    for (size_t i = 0; i < job_count; i++) {
        own += median(&jobs[i].own);
        other += median(&jobs[i].other);
    }
    add_row(IN_PROCESS, "delvewheel, its Python started already: a file",
            other / (double)job_count * 1e3, "ms");
    add_row(IN_PROCESS, "exti_rewrite: a file", own / (double)job_count * 1e3, "ms");
    add_claim(IN_PROCESS, "delvewheel against exti_rewrite", other / own, "x", false, 20);
    free(command);
}

static struct cost by_extisolate(const struct bench *b, const char *dir, const struct job *j)
{
    char *argv[] = {
        arg(b->program), arg("copy"), arg("--libpython"), arg(b->pe_library), arg(j->source),
        arg(dir),        NULL};

    return run(argv);
}

static struct cost by_program(const struct bench *b, const struct job *j)
{
    char *argv[] = {arg(b->delvewheel),    arg("-m"),      arg("delvewheel"),
                    arg("replace-needed"), arg("-change"), arg(j->needed[0].from),
                    arg(j->needed[0].to),  arg(j->copy),   NULL};
    struct cost cost;

    copy_dll(j->source, j->copy);
    cost = run(argv);
    unlink(j->copy);
    return cost;
}

static void add_programs(const char *title, struct samples *other, struct samples *own, bool claim)
{
    double a = median(other), b = median(own);

    add_row(title, "delvewheel replace-needed: a file", a * 1e3, "ms");
    add_row(title, "extisolate copy: a file", b * 1e3, "ms");
    if (claim)
        add_claim(title, "delvewheel against extisolate", a / b, "x", false, 20);
    else
        add_row(title, "delvewheel against extisolate", a / b, "x");
}

static void programs(const struct bench *b)
{
    static struct samples wall[2], cpu[2];
    char *dir = path_in(b, "context");
    size_t step = b->quick ? 16 : 3;

    for (size_t i = 0; i + 1 < job_count; i += step) {
        struct cost other = by_program(b, &jobs[i]), own;

        /* The context has its libpython already, as for every extension after the first. */
        by_extisolate(b, dir, &jobs[job_count - 1]);
        own = by_extisolate(b, dir, &jobs[i]);
        remove_tree(dir);
        add_sample(&wall[0], other.wall);
        add_sample(&wall[1], own.wall);
        add_sample(&cpu[0], other.cpu);
        add_sample(&cpu[1], own.cpu);
    }
    add_programs(PROGRAMS ", time on the clock", &wall[0], &wall[1], true);
    add_programs(PROGRAMS ", processor time", &cpu[0], &cpu[1], false);
    free(dir);
}

void bench_pe(const struct bench *b)
{
    char *list = path_in(b, "pe_jobs");

    copy_large(b);
    if (access(list, R_OK) != 0) {
        add_skip(IN_PROCESS, "delvewheel or the files cannot be had");
        return;
    }
    read_jobs(list);
    in_process(b, list);
    programs(b);
    free(list);
}
