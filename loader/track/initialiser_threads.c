/* Threads that copies have started before their calls could be re-pointed: initialisers do, and those to whom
 * an initialiser has given the C library's own function, as jemalloc's.  glibc keeps what a thread has started
 * with in its descriptor at the upper end of its stack, where the kernel's account of its stack pointer
 * leads, and tells debuggers where in that (nptl_db).  Where that account is of another stack, as under valgrind,
 * they are not found; where it cannot be read, that is reported as if one was. */
#define _GNU_SOURCE
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
#include "base/os/path.h"
#include "loader/store/copy_names.h"
#include "loader/track/context_threads.h"
#include "loader/track/module.h"

#ifdef __GLIBC__
/* As far as a descriptor is looked for above the stack pointer, and how much of it at a time: it has less, and
 * is aligned to STEP.  The end of the mapping may be that of another which the kernel has joined. */
#define REACH ((uintptr_t)16 << 20)
#define PIECE ((size_t)16384)
#define DESCRIPTOR_MAX (PIECE / 4)
#define STEP 16

/* Of these it is known that they join them as they are unloaded. */
static const char *const joiners[] = {"*openblas*"};

struct mapping {
    uintptr_t lo, hi;
    bool code, own; /* own: of the context's copies but joiners */
};

struct mappings {
    struct mapping *items;
    size_t count;
};

static bool lies_in(const char *path, const char *dir)
{
    const size_t n = strlen(dir);

    return strncmp(path, dir, n) == 0 && path[n] == '/';
}

static bool joins(const char *path)
{
    for (size_t i = 0; i < sizeof joiners / sizeof *joiners; i++)
        if (exti__glob_matches(joiners[i], exti__base_name(path), false))
            return true;
    return false;
}

static bool add_mapping(struct mappings *all, const char *line, const char *dir)
{
    const char *path = strchr(line, '/');
    struct mapping *more, one = {0};
    char permissions[5];

    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &one.lo, &one.hi, permissions) != 3)
        return true;
    one.code = permissions[2] == 'x';
    one.own = one.code && path && lies_in(path, dir) && !joins(path);
    if (!(all->count & (all->count - 1))) {
        more = exti__realloc_array(all->items, all->count ? all->count * 2 : 1, sizeof *more);
        if (!more)
            return false;
        all->items = more;
    }
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

/* They are in ascending order. */
static const struct mapping *mapping_of(const struct mappings *all, uintptr_t address)
{
    size_t lo = 0, hi = all->count;

    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;

        if (all->items[mid].hi <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < all->count && all->items[lo].lo <= address ? &all->items[lo] : NULL;
}

/* 0 while the thread runs: not even the kernel knows it then. */
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
    /* The last but one; the last is the program counter. */
    word = strrchr(text, ' ');
    while (word && word > text && word[-1] != ' ')
        word--;
    return word ? (uintptr_t)strtoull(word, NULL, 16) : 0;
}

/* What the C library tells debuggers of a member of the descriptor: its bits, how many there are, and where. */
static bool offset_of(const char *symbol, size_t bits, size_t *out)
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
    return offset_of("_thread_db_pthread_tid", 32, &d->tid) &&
           offset_of("_thread_db_pthread_start_routine", 8 * sizeof(uintptr_t), &d->start);
}

/* What the thread has started with, if its descriptor is in these bytes, or 0. */
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

/* The thread may end meanwhile, and its stack go: reading that must not be a fault. */
static uintptr_t start_of(const struct mappings *all, const struct descriptor *d, int memory,
                          int32_t tid)
{
    unsigned char bytes[PIECE + DESCRIPTOR_MAX];
    uintptr_t from = stack_pointer(tid) & ~(uintptr_t)(STEP - 1), start = 0;
    const struct mapping *stack = mapping_of(all, from);
    const uintptr_t end = stack && stack->hi - from > REACH ? from + REACH : stack ? stack->hi : 0;

    for (; from < end && !start; from += PIECE) {
        const size_t left = end - from, size = left < sizeof bytes ? left : sizeof bytes;

        /* The last piece may be shorter than what a descriptor may have at most. */
        memset(bytes, 0, sizeof bytes);
        if (pread(memory, bytes, size, (off_t)from) != (ssize_t)size)
            return 0;
        start = start_in(all, d, bytes, sizeof bytes, tid);
    }
    return start;
}

/* One that runs is looked at again: if it goes on, it counts as none of the context's. */
static uintptr_t start_in_time(const struct mappings *all, const struct descriptor *d, int memory,
                               int32_t tid)
{
    const struct timespec moment = {0, 1000000};

    for (int i = 0; i < 50 && !stack_pointer(tid); i++)
        nanosleep(&moment, NULL);
    return start_of(all, d, memory, tid);
}

/* Not one that is known to be the context's or the program's. */
static bool may_be_one(int32_t tid)
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

        if (!may_be_one(tid))
            continue;
        start = start_in_time(all, d, memory, tid);
        if (!start || !mapping_of(all, start)->own)
            continue;
        exti__ctx_thread_describe(ctx, tid, start, &finding);
        report(user, &finding);
        n++;
    }
    return n;
}

/* A process that has no descriptors left, or was another user's, cannot look: any thread may be one then.
 * `tasks`: NULL if not even they can be told. */
static size_t report_blindness(const struct exti_ctx *ctx, DIR *tasks, int error,
                               exti_report_fn report, void *user)
{
    struct exti_error finding = {0};
    const struct dirent *e;
    bool any = !tasks;

    while (!any && (e = readdir(tasks)))
        any = may_be_one((int32_t)strtol(e->d_name, NULL, 10));
    if (!any)
        return 0;
    exti__fail(&finding, EXTI_E_BUSY, EXTI_NO_OFFSET,
               "whether a thread that an initialiser has started still runs cannot be told: %s",
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
    if (!tasks || memory < 0 || !read_mappings(&all, exti_ctx_dir(ctx)))
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
/* musl unmaps nothing. */
size_t exti__initialiser_threads_report(const struct exti_ctx *ctx, exti_report_fn report,
                                        void *user)
{
    (void)ctx;
    (void)report;
    (void)user;
    return 0;
}
#endif
