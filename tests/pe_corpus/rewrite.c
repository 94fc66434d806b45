/* Calls the library for the tests of real PE files.
 *
 *   pe_rewrite --make <JOBS      makes each copy, and prints `made SOURCE COPY MICROSECONDS`, or
 *                                `refused SOURCE CODE REASON`, separated by tabs
 *   pe_rewrite --again <JOBS     makes existing copies again, edits them again, and copies sources
 *                                without edits: the first two must give the copy's bytes, and
 *                                the last the source's
 *   pe_rewrite --judge <JOBS     checks each copy against its source
 *   pe_rewrite --lief <JOBS      prints what LIEF sees of each copy: `COPY import NAME`; status 3
 *                                without LIEF
 *
 * A line of JOBS has source, copy, the copy's own name and the libraries to rename, separated by
 * tabs.  Libraries are FROM=TO, separated by |.  The last two fields may be empty. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/lief.h"
#include <extisolate.h>

#define MOST_RENAMES 256

struct job {
    char *source, *copy, *id;
    struct exti_needed needed[MOST_RENAMES];
    size_t count;
};

static struct exti_error error;
static int failures;

static void failed(const char *path, const char *what)
{
    printf("%s: %s\n", path, what);
    failures++;
}

static char *cut(char *s, char at)
{
    char *end = strchr(s, at);

    if (!end)
        return s + strlen(s);
    *end = 0;
    return end + 1;
}

static void read_job(char *line, struct job *j)
{
    char *names;

    *j = (struct job){.source = line};
    line[strcspn(line, "\n")] = 0;
    j->copy = cut(j->source, '\t');
    j->id = cut(j->copy, '\t');
    names = cut(j->id, '\t');
    cut(names, '\t');
    while (*names && j->count < MOST_RENAMES) {
        char *from = names;

        names = cut(from, '|');
        j->needed[j->count].to = cut(from, '=');
        j->needed[j->count++].from = from;
    }
}

static int rewrite(const struct job *j, const char *from, const char *to)
{
    const struct exti_rewrite_opts opts = {.size = sizeof opts,
                                           .id = *j->id ? j->id : NULL,
                                           .needed = j->needed,
                                           .needed_count = j->count};

    return exti_rewrite(from, to, &opts, &error);
}

static double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static void make_copy(struct job *j)
{
    double start = now();

    if (rewrite(j, j->source, j->copy))
        printf("refused\t%s\t%s\t%s\n", j->source, exti_code_name(error.code), error.message);
    else
        printf("made\t%s\t%s\t%.0f\n", j->source, j->copy, now() - start);
}

static bool same(const char *a, const char *b)
{
    static char x[1 << 16], y[1 << 16];
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    size_t n, m;

    if (!f || !g) {
        perror(f ? b : a);
        exit(2);
    }
    do {
        n = fread(x, 1, sizeof x, f);
        m = fread(y, 1, sizeof y, g);
    } while (n && n == m && memcmp(x, y, n) == 0);
    fclose(f);
    fclose(g);
    return n == 0 && m == 0;
}

static void again(struct job *j)
{
    static const struct exti_rewrite_opts nothing = {.size = sizeof nothing};
    char other[4096];

    snprintf(other, sizeof other, "%s.again", j->copy);
    if (rewrite(j, j->source, other))
        failed(j->source, error.message);
    else if (!same(j->copy, other))
        failed(j->source, "made twice, it gives two files");
    if (rewrite(j, j->copy, other))
        failed(j->copy, error.message);
    else if (!same(j->copy, other))
        failed(j->copy, "edited once more, it is another file");
    if (exti_rewrite(j->source, other, &nothing, &error))
        failed(j->source, error.message);
    else if (!same(j->source, other))
        failed(j->source, "with no edit, it is another file");
    unlink(other);
}

static int print_finding(void *user, const struct exti_error *finding)
{
    printf("%s: 0x%llx: %s\n", (const char *)user, (unsigned long long)finding->offset,
           finding->message);
    failures++;
    return 0;
}

static void judge(struct job *j)
{
    size_t findings;

    if (exti_verify(j->copy, j->source, print_finding, j->copy, &findings, &error))
        failed(j->source, error.message);
}

static void read_by_lief(struct job *j)
{
    static char facts[65536];
    char *line = facts, *next;

    if (!lief_read_pe(j->copy, facts, sizeof facts)) {
        printf("%s\tunreadable\n", j->copy);
        return;
    }
    for (; *line; line = next) {
        next = cut(line, '\n');
        printf("%s\t%s\n", j->copy, line);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*each)(struct job *j);
    } modes[] = {
        {"--make", make_copy}, {"--again", again}, {"--judge", judge}, {"--lief", read_by_lief}};
    static struct job job;
    char *line = NULL;
    size_t cap = 0, mode = 0;

    while (mode < sizeof modes / sizeof *modes && (argc != 2 || strcmp(argv[1], modes[mode].name)))
        mode++;
    if (mode == sizeof modes / sizeof *modes) {
        fprintf(stderr, "usage: see the top of rewrite.c\n");
        return 2;
    }
    if (modes[mode].each == read_by_lief && !lief_found())
        return 3;
    while (getline(&line, &cap, stdin) > 0) {
        read_job(line, &job);
        modes[mode].each(&job);
    }
    free(line);
    return failures > 0;
}
