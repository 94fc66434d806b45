#include "runtime/room.h"

#ifdef __linux__
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/fail.h"
#include "runtime/host.h"

/* Measured: 24 to 31 with CPython 3.11 to 3.15, of which the least that others may need is less. */
#define MAPPINGS 20
/* Measured: 155 with numpy and OpenBLAS. */
#define MAPPINGS_WITH_PACKAGES 160

#define MAX_MAP_COUNT "/proc/sys/vm/max_map_count"

struct ceiling {
    const char *things;
    uint64_t each;  /* a context takes so many */
    uint64_t limit; /* a process may have; UINT64_MAX: there is none */
    const char *remedy;
};

/* A limit that the kernel tells in a file, as a number or "max". */
static uint64_t limit_in(const char *file)
{
    uint64_t limit = UINT64_MAX;
    FILE *f = fopen(file, "re");

    if (f) {
        if (fscanf(f, "%" SCNu64, &limit) != 1)
            limit = UINT64_MAX;
        fclose(f);
    }
    return limit;
}

static uint64_t resource_limit(int resource)
{
    struct rlimit limit;

    return getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur
                                                                               : UINT64_MAX;
}

static int fail_ceiling(const struct ceiling *c, int contexts, struct exti_error *err)
{
    return pyrt_fail(err, EXTI_E_UNSUPPORTED,
                     "%d contexts need at least %" PRIu64 " %s, and a process may have %" PRIu64
                     ": run at most %" PRIu64 ", or %s",
                     contexts, c->each * (uint64_t)contexts, c->things, c->limit,
                     c->limit / c->each, c->remedy);
}

int pyrt_room_check(int contexts, struct exti_error *err)
{
    const struct ceiling ceilings[] = {
        {"mappings", MAPPINGS, limit_in(MAX_MAP_COUNT), "raise the limit: sysctl vm.max_map_count"},
        {"threads", 1, limit_in("/sys/fs/cgroup/pids.max"),
         "give the container more: its limit of processes (pids.max)"},
        /* setrlimit(2): the superuser's count is not limited. */
        {"threads", 1, geteuid() ? resource_limit(RLIMIT_NPROC) : UINT64_MAX,
         "raise the limit: ulimit -u"},
        {"bytes of address space", pyrt_stack_size(), resource_limit(RLIMIT_AS),
         "raise the limit: ulimit -v"},
    };

    for (size_t i = 0; i < sizeof ceilings / sizeof *ceilings; i++)
        if ((uint64_t)contexts > ceilings[i].limit / ceilings[i].each)
            return fail_ceiling(&ceilings[i], contexts, err);
    return 0;
}

long pyrt_room_for_packages(int contexts)
{
    const uint64_t needed = (uint64_t)contexts * MAPPINGS_WITH_PACKAGES;

    return needed > limit_in(MAX_MAP_COUNT) ? (long)needed : 0;
}

#else

int pyrt_room_check(int contexts, struct exti_error *err)
{
    (void)contexts, (void)err;
    return 0;
}

long pyrt_room_for_packages(int contexts)
{
    (void)contexts;
    return 0;
}

#endif
