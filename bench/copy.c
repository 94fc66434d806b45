/* One copy made in process, compared with a plain copy of the same file, and the time per stage. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/os/fs_replace.h"
#include "base/plan.h"
#include "bench/bench.h"
#include "loader/image/formats.h"

#define SECTION "one copy of numpy's _multiarray_umath, in process"

static void plain_by_range(const char *from, const char *to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0777);
    struct stat st;
    ssize_t n;

    if (in < 0 || out < 0 || fstat(in, &st) != 0)
        die("cannot copy %s: %s", from, strerror(errno));
    for (off_t left = st.st_size; left > 0; left -= n) {
        n = copy_file_range(in, NULL, out, NULL, (size_t)left, 0);
        if (n <= 0)
            die("copy_file_range of %s: %s", from, strerror(errno));
    }
    close(in);
    close(out);
}

static void plain_by_read(const char *from, const char *to)
{
    static char buf[1 << 18];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0777);
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

static struct exti_rewrite_opts edits(const struct bench *b)
{
    static struct exti_needed needed;

    needed = (struct exti_needed){NULL, b->api, EXTI_NEEDED_FIRST};
    return (struct exti_rewrite_opts){
        .size = sizeof(struct exti_rewrite_opts),
        .id = "_multiarray_umath.bench00.so",
        .needed = &needed,
        .needed_count = 1,
        .path_prepend = "$ORIGIN",
        .origin = "/usr/lib",
        .flags = EXTI_RW_CLEAR_NODELETE | EXTI_RW_CLEAR_UNIQUE,
    };
}

static void rewrite_elf(const char *from, const char *to, const struct exti_rewrite_opts *opts)
{
    struct exti_error err;

    if (exti_rewrite(from, to, opts, &err) != 0)
        die("%s: %s", err.file, err.message);
}

/* ---- the stages, one by one ------------------------------------------------------------------ */

enum { MAP, PLAN, IMAGE, STRAY, CHECK, WRITE, UNMAP, STAGES };

static const char *const stage_names[STAGES] = {
    [MAP] = "map the source",
    [PLAN] = "plan",
    [IMAGE] = "map the image and apply the plan",
    [STRAY] = "self-check: no unplanned byte changed",
    [CHECK] = "self-check: structure",
    [WRITE] = "write and rename",
    [UNMAP] = "unmap",
};

static int found(void *user, const struct exti_error *finding)
{
    (void)user;
    die("self-check: %s", finding->message);
}

static void lap(struct samples *s, double *since)
{
    double t = now();

    add_sample(s, t - *since);
    *since = t;
}

static void staged(const char *from, const char *to, const struct exti_rewrite_opts *opts,
                   struct samples stages[STAGES])
{
    const struct exti_format_ops *ops;
    struct exti_mapping source, image;
    struct exti_span before, after;
    struct exti_file_id id;
    struct exti_error err = {0};
    struct exti_plan plan;
    double t = now();
    size_t size;

    must(exti__fs_map(from, &source, &id, &err), &err);
    lap(&stages[MAP], &t);
    before = exti__span(source.p, source.n);
    exti__plan_init(&plan, source.n * 4 + (1 << 20));
    must(exti__format_of(before, &ops, &err), &err);
    must(ops->plan(before, &(struct exti_request){.opts = opts}, &plan, &err), &err);
    lap(&stages[PLAN], &t);
    size = (size_t)exti__plan_size(&plan, source.n);
    must(exti__fs_map_image(&source, size - source.n, &image, &err), &err);
    exti__plan_apply(&plan, image.p, source.n);
    after = exti__span(image.p, size);
    lap(&stages[IMAGE], &t);
    if (exti__plan_stray(&plan, before, after, NULL) != EXTI_NO_OFFSET)
        die("an unplanned byte has changed");
    lap(&stages[STRAY], &t);
    must(ops->check(before, after, &(struct exti_request){.opts = opts}, &plan, found, NULL, &err),
         &err);
    lap(&stages[CHECK], &t);
    must(exti__fs_replace(to, image.p, size, EXTI_FS_EXECUTABLE, &err), &err);
    lap(&stages[WRITE], &t);
    exti__plan_free(&plan);
    exti__fs_unmap(&source);
    exti__fs_unmap(&image);
    lap(&stages[UNMAP], &t);
}

/* Gives the extension, or a copy of it if it lies on another file system than the results. */
static char *source_beside(const struct bench *b)
{
    struct stat from, to;
    char *copy;

    if (stat(b->extension, &from) != 0 || stat(b->dir, &to) != 0)
        die("cannot look up %s: %s", b->extension, strerror(errno));
    if (from.st_dev == to.st_dev)
        return strdup(b->extension);
    copy = path_in(b, "in.so");
    plain_by_read(b->extension, copy);
    return copy;
}

/* Measures wall time and this thread's processor time; on a busy machine only the latter can be
 * repeated.  Neither copy waits for the disk. */
struct timing {
    struct samples wall, cpu;
};

static double cpu_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

enum { RANGE, READING, REWRITE, WAYS };

static void copy_once(int way, const char *from, const char *to,
                      const struct exti_rewrite_opts *opts, struct timing *t)
{
    double wall = now(), cpu = cpu_now();

    if (way == RANGE)
        plain_by_range(from, to);
    else if (way == READING)
        plain_by_read(from, to);
    else
        rewrite_elf(from, to, opts);
    add_sample(&t->cpu, cpu_now() - cpu);
    add_sample(&t->wall, now() - wall);
    unlink(to);
}

static void add_ways(const char *section, struct samples *way[WAYS], bool claim)
{
    double range = median(way[RANGE]), reading = median(way[READING]), own = median(way[REWRITE]);
    double ratio = own / (range < reading ? range : reading);

    add_row(section, "plain copy, copy_file_range", range * 1e3, "ms");
    add_row(section, "plain copy, read and write", reading * 1e3, "ms");
    add_row(section, "exti_rewrite", own * 1e3, "ms");
    if (claim)
        add_claim(section, "exti_rewrite against the faster plain copy", ratio, "x", true, 1.5);
    else
        add_row(section, "exti_rewrite against the faster plain copy", ratio, "x");
}

void bench_copy(const struct bench *b)
{
    static struct timing ways[WAYS];
    static struct samples stages[STAGES];
    struct samples *wall[WAYS], *cpu[WAYS];
    const struct exti_rewrite_opts opts = edits(b);
    char *from = source_beside(b), *to = path_in(b, "out.so");

    for (int i = 0; i < (b->quick ? 30 : 300); i++) {
        for (int way = 0; way < WAYS; way++)
            copy_once(way, from, to, &opts, &ways[way]);
        staged(from, to, &opts, stages);
        unlink(to);
    }
    for (int way = 0; way < WAYS; way++) {
        wall[way] = &ways[way].wall;
        cpu[way] = &ways[way].cpu;
    }
    add_ways(SECTION ", time on the clock", wall, true);
    for (int i = 0; i < STAGES; i++)
        add_row("  of which", stage_names[i], median(&stages[i]) * 1e3, "ms");
    add_ways(SECTION ", processor time", cpu, false);
    free(from);
    free(to);
}
