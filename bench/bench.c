#define _GNU_SOURCE
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <extisolate/python.h>
#include <jansson.h>

extern char **environ;

struct row {
    const char *section;
    char what[96];
    double value, limit;
    const char *unit;
    bool at_most;
};

static struct row rows[64];
static size_t row_count;

void die(const char *fmt, ...)
{
    va_list ap;

    fprintf(stderr, "bench: ");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    exit(1);
}

void must(int rc, const struct exti_error *err)
{
    if (rc < 0)
        die("%s: %s: %s", extipy_code_name(rc), err->file, err->message);
}

void keep_least(double *least, double v)
{
    if (*least == 0 || v < *least)
        *least = v;
}

double now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

void add_sample(struct samples *s, double v)
{
    if (s->n < ARRAY_SIZE(s->v))
        s->v[s->n++] = v;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

double median(struct samples *s)
{
    if (!s->n)
        return NAN;
    qsort(s->v, s->n, sizeof *s->v, by_value);
    return (s->v[s->n / 2] + s->v[(s->n - 1) / 2]) / 2;
}

static struct row *next_row(const char *section, const char *what, double value, const char *unit)
{
    struct row *r = &rows[row_count];

    if (row_count == ARRAY_SIZE(rows))
        die("more than %zu rows", ARRAY_SIZE(rows));
    row_count++;
    *r = (struct row){.section = section, .value = value, .unit = unit};
    snprintf(r->what, sizeof r->what, "%s", what);
    return r;
}

void add_row(const char *section, const char *what, double value, const char *unit)
{
    next_row(section, what, value, unit);
}

void add_claim(const char *section, const char *what, double value, const char *unit, bool at_most,
               double limit)
{
    struct row *r = next_row(section, what, value, unit);

    r->at_most = at_most;
    r->limit = limit;
}

void add_skip(const char *section, const char *reason)
{
    next_row(section, reason, NAN, NULL);
}

static bool claim_holds(const struct row *r)
{
    return r->at_most ? r->value <= r->limit : r->value >= r->limit;
}

static void print_value(const struct row *r)
{
    if (isnan(r->value))
        printf("%10s     ", "not run");
    else if (!strcmp(r->unit, "x"))
        printf("%10.2f %-4s", r->value, r->unit);
    else
        printf("%10.*f %-4s", fabs(r->value) < 100 ? 2 : 0, r->value, r->unit);
}

static void print_rows(void)
{
    const char *section = "";

    for (size_t i = 0; i < row_count; i++) {
        const struct row *r = &rows[i];

        if (strcmp(section, r->section) != 0)
            printf("\n%s\n", r->section);
        section = r->section;
        printf("  %-66s", r->what);
        print_value(r);
        if (r->limit != 0)
            printf("  claim: %s %g %s  %s", r->at_most ? "at most" : "at least", r->limit, r->unit,
                   claim_holds(r) ? "HOLDS" : "DOES NOT HOLD");
        printf("\n");
    }
    printf("\n");
}

static void print_json(void)
{
    json_t *list = json_array();

    for (size_t i = 0; i < row_count; i++) {
        const struct row *r = &rows[i];
        json_t *o = json_pack("{s:s,s:s}", "section", r->section, "what", r->what);

        if (!isnan(r->value)) {
            json_object_set_new(o, "value", json_real(r->value));
            json_object_set_new(o, "unit", json_string(r->unit));
        }
        if (r->limit != 0) {
            json_object_set_new(o, r->at_most ? "at_most" : "at_least", json_real(r->limit));
            json_object_set_new(o, "holds", json_boolean(claim_holds(r)));
        }
        json_array_append_new(list, o);
    }
    json_dumpf(list, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    printf("\n");
    json_decref(list);
}

char *path_in(const struct bench *b, const char *name)
{
    char *path;

    if (asprintf(&path, "%s/%s", b->dir, name) < 0)
        die("out of memory");
    return path;
}

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

struct cost run(char *const argv[])
{
    posix_spawn_file_actions_t actions;
    struct rusage usage;
    struct cost cost;
    double start;
    int status, rc;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    start = now();
    rc = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    if (rc)
        die("cannot run %s: %s", argv[0], strerror(rc));
    if (wait4(pid, &status, 0, &usage) != pid)
        die("cannot wait for %s: %s", argv[0], strerror(errno));
    cost.wall = now() - start;
    cost.cpu = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    posix_spawn_file_actions_destroy(&actions);
    if (status)
        die("%s %s ended with status %d", argv[0], argv[1] ? argv[1] : "", status);
    return cost;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void remove_tree(const char *path)
{
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        die("cannot remove %s: %s", path, strerror(errno));
}

static const char *setting(const char *name)
{
    const char *v = getenv(name);

    if (!v || !*v)
        die("%s is not set; start it by bench/run.sh", name);
    return v;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*measure)(const struct bench *b);
    } parts[] = {
        {"copy", bench_copy},     {"cli", bench_cli},     {"parallel", bench_parallel},
        {"memory", bench_memory}, {"macho", bench_macho}, {"pe", bench_pe},
        {"tree", bench_tree},     {"embed", bench_embed}, {"calls", bench_calls},
        {"links", bench_links},
    };
    const char *memory = getenv("BENCH_MEMORY");
    const struct bench b = {
        .program = setting("BENCH_PROGRAM"),
        .extension = setting("BENCH_EXTENSION"),
        .api = setting("BENCH_API"),
        .python = setting("BENCH_PYTHON"),
        .dir = setting("BENCH_DIR"),
        .memory = memory && *memory ? memory : setting("BENCH_DIR"),
        .delvewheel = getenv("BENCH_DELVEWHEEL"),
        .pe_library = getenv("BENCH_PE_LIBRARY"),
        .quick = getenv("BENCH_QUICK") != NULL,
    };
    bool json = false;
    const char *only = NULL;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            json = true;
        else
            only = argv[i];
    }
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (only && strcmp(only, parts[i].name) != 0)
            continue;
        fprintf(stderr, "measuring: %s\n", parts[i].name);
        parts[i].measure(&b);
    }
    if (json)
        print_json();
    else
        print_rows();
    return 0;
}
