/* Initialisers run before their copy's calls are re-pointed; so do functions that an initialiser
 * has got the C library's pthread_create for, as jemalloc's.  glibc keeps a thread's start routine
 * in the descriptor at the upper end of its stack, which the stack pointer in /proc leads to, and
 * tells debuggers the member's offset (nptl_db).  Under valgrind /proc tells another stack, and the
 * threads are not found.  Where /proc cannot be read, a finding says so, as if there was a
 * thread. */
#define _GNU_SOURCE
#include "loader/track/initialiser_threads.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/glob.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/track/context_threads.h"
#include "loader/track/module.h"
#include "loader/track/thread_description.h"

#ifdef __GLIBC__
/* How far above the stack pointer a descriptor is looked for, and how much is read at a time.  A
 * descriptor is smaller than DESCRIPTOR_MAX and aligned to STEP.  The mapping's end is no bound:
 * the kernel joins adjacent mappings. */
#define REACH ((uintptr_t)16 << 20)
#define PIECE ((size_t)16384)
#define DESCRIPTOR_MAX (PIECE / 4)
#define STEP 16

/* Libraries that are known to join their threads when they are unloaded. */
static const char *const joiners[] = {"*openblas*"};

struct mapping {
    uintptr_t lo, hi;
    bool code, own; /* own: of a copy of the context that is no joiner */
};

struct mappings {
    struct mapping *items; /* owned; by ascending address, as the kernel lists them */
    size_t count, cap;
};

static bool is_joiner(const char *path)
{
    for (size_t i = 0; i < sizeof joiners / sizeof *joiners; i++)
        if (exti__glob_matches(joiners[i], exti__base_name(path), false))
            return true;
    return false;
}

static bool add_mapping(struct mappings *all, const char *line, const char *dir)
{
    const char *path = strchr(line, '/');
    struct mapping *items, one = {0};
    char permissions[5];

    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &one.lo, &one.hi, permissions) != 3)
        return true;
    one.code = permissions[2] == 'x';
    one.own = one.code && path && exti__path_is_below(path, dir) && !is_joiner(path);
    items = exti__array_room(all->items, all->count, &all->cap, sizeof *items);
    if (!items)
        return false;
    all->items = items;
    all->items[all->count++] = one;
    return true;
}

static bool read_mappings(struct mappings *all, const char *dir)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char *line = NULL;
    size_t room = 0;
    bool ok = f != NULL;

    while (ok && getline(&line, &room, f) > 0)
        ok = add_mapping(all, line, dir);
    free(line);
    if (f)
        fclose(f);
    return ok;
}

static uintptr_t mapping_start(const void *item)
{
    return ((const struct mapping *)item)->lo;
}

static const struct mapping *mapping_of(const struct mappings *all, uintptr_t address)
{
    const size_t n =
        exti__count_up_to(all->items, all->count, sizeof *all->items, mapping_start, address);

    return n && address < all->items[n - 1].hi ? &all->items[n - 1] : NULL;
}

/* 0 while the thread runs: then not even the kernel knows it. */
static uintptr_t stack_pointer(int32_t tid)
{
    char path[64], text[256] = "";
    const char *word;
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/task/%ld/syscall", (long)tid);
    f = fopen(path, "re");
    if (f && !fgets(text, sizeof text, f))
        text[0] = 0;
    if (f)
        fclose(f);
    /* proc(5): the last word is the program counter, the one before it the stack pointer. */
    word = strrchr(text, ' ');
    while (word && word > text && word[-1] != ' ')
        word--;
    return word ? (uintptr_t)strtoull(word, NULL, 16) : 0;
}

/* nptl_db describes a member of the descriptor by three numbers: its size in bits, the number of
 * elements, and its offset. */
static bool member_offset(const char *symbol, size_t bits, size_t *out)
{
    const uint32_t *told = dlsym(RTLD_DEFAULT, symbol);

    if (!told || told[0] != bits || told[2] >= DESCRIPTOR_MAX)
        return false;
    *out = told[2];
    return true;
}

struct descriptor {
    size_t tid, start;
};

static bool learn_descriptor(struct descriptor *d)
{
    return member_offset("_thread_db_pthread_tid", 32, &d->tid) &&
           member_offset("_thread_db_pthread_start_routine", 8 * sizeof(uintptr_t), &d->start);
}

/* The thread's start routine if its descriptor is in these bytes, or 0. */
static uintptr_t start_in(const struct mappings *all, const struct descriptor *d,
                          const unsigned char *bytes, size_t size, int32_t tid)
{
    for (size_t at = 0; at + DESCRIPTOR_MAX <= size; at += STEP) {
        const struct mapping *m;
        uintptr_t start;

        memcpy(&start, bytes + at + d->start, sizeof start);
        if (memcmp(bytes + at + d->tid, &tid, sizeof tid) == 0 && (m = mapping_of(all, start)) &&
            m->code)
            return start;
    }
    return 0;
}

/* Reads through /proc/self/mem: if the thread ends meanwhile, its stack goes, and reading it must
 * not fault. */
static uintptr_t start_of(const struct mappings *all, const struct descriptor *d, int memory,
                          int32_t tid)
{
    unsigned char bytes[PIECE + DESCRIPTOR_MAX];
    uintptr_t from = stack_pointer(tid) & ~(uintptr_t)(STEP - 1), start = 0;
    const struct mapping *stack = mapping_of(all, from);
    const uintptr_t end = stack && stack->hi - from > REACH ? from + REACH : stack ? stack->hi : 0;

    for (; from < end && !start; from += PIECE) {
        const size_t left = end - from, size = left < sizeof bytes ? left : sizeof bytes;

        /* The last piece may be shorter than DESCRIPTOR_MAX. */
        memset(bytes, 0, sizeof bytes);
        if (pread(memory, bytes, size, (off_t)from) != (ssize_t)size)
            return 0;
        start = start_in(all, d, bytes, sizeof bytes, tid);
    }
    return start;
}

/* A thread that runs is looked at again.  If it runs on, it does not count as the context's. */
static uintptr_t start_in_time(const struct mappings *all, const struct descriptor *d, int memory,
                               int32_t tid)
{
    const struct timespec moment = {0, 1000000};

    for (int i = 0; i < 50 && !stack_pointer(tid); i++)
        nanosleep(&moment, NULL);
    return start_of(all, d, memory, tid);
}

/* Excludes the threads that are known to be a context's, and the program's first and this one. */
static bool is_candidate(int32_t tid)
{
    return tid > 0 && tid != getpid() && tid != syscall(SYS_gettid) &&
           !exti__ctx_thread_is_known(tid);
}

static size_t report_threads(const struct exti_ctx *ctx, const struct mappings *all,
                             const struct descriptor *d, int memory, DIR *tasks,
                             exti_report_fn report, void *user)
{
    const struct dirent *e;
    size_t n = 0;

    while ((e = readdir(tasks))) {
        const int32_t tid = (int32_t)strtol(e->d_name, NULL, 10);
        struct exti_error finding = {0};
        uintptr_t start;

        if (!is_candidate(tid))
            continue;
        start = start_in_time(all, d, memory, tid);
        if (!start || !mapping_of(all, start)->own)
            continue;
        exti__thread_describe(ctx, tid, start, &finding);
        report(user, &finding);
        n++;
    }
    return n;
}

/* A process that has no descriptors left, or has changed its user, cannot read /proc: then any
 * thread may be one.  `tasks` is NULL if not even the threads can be listed. */
static size_t report_blindness(const struct exti_ctx *ctx, DIR *tasks, int error,
                               exti_report_fn report, void *user)
{
    struct exti_error finding = {0};
    const struct dirent *e;
    bool any = !tasks;

    while (!any && (e = readdir(tasks)))
        any = is_candidate((int32_t)strtol(e->d_name, NULL, 10));
    if (!any)
        return 0;
    exti__fail(&finding, EXTI_E_BUSY, EXTI_NO_OFFSET,
               "cannot tell whether a thread that an initialiser has started still runs: %s",
               strerror(error));
    exti__error_file(&finding, ctx->api->copy);
    report(user, &finding);
    return 1;
}

size_t exti__initialiser_threads_report(const struct exti_ctx *ctx, exti_report_fn report,
                                        void *user)
{
    struct descriptor d;
    struct mappings all = {0};
    DIR *tasks;
    int memory, error = 0;
    size_t n;

    if (!learn_descriptor(&d))
        return 0;
    tasks = opendir("/proc/self/task");
    memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (!tasks || memory < 0 || !read_mappings(&all, exti__ctx_dir(ctx)))
        error = errno;
    n = error ? report_blindness(ctx, tasks, error, report, user)
              : report_threads(ctx, &all, &d, memory, tasks, report, user);
    exti__free(all.items);
    if (memory >= 0)
        close(memory);
    if (tasks)
        closedir(tasks);
    return n;
}
#else
/* musl never unmaps a library. */
size_t exti__initialiser_threads_report(const struct exti_ctx *ctx, exti_report_fn report,
                                        void *user)
{
    (void)ctx;
    (void)report;
    (void)user;
    return 0;
}
#endif
