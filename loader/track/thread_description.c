#include "loader/track/thread_description.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "loader/track/address_map.h"

#define EXITING 0x4u /* PF_EXITING of include/linux/sched.h, which do_exit sets before exit_mm */

bool exti__thread_is_exiting(pid_t tid)
{
    char path[64], line[512] = "";
    const char *after; /* the name, which may have any character in it */
    unsigned flags = 0;
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", (long)tid);
    f = fopen(path, "re");
    if (f && !fgets(line, sizeof line, f))
        line[0] = 0;
    if (f)
        fclose(f);
    after = strrchr(line, ')');
    /* The ninth field: proc_pid_stat(5). */
    return after && sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
           (flags & EXITING);
}

static void read_thread_name(pid_t tid, char *name, size_t size)
{
    char path[64];
    FILE *f;

    name[0] = 0;
    snprintf(path, sizeof path, "/proc/self/task/%ld/comm", (long)tid);
    f = fopen(path, "re");
    if (f && !fgets(name, (int)size, f))
        name[0] = 0;
    if (f)
        fclose(f);
    name[strcspn(name, "\n")] = 0;
}

void exti__thread_describe(const struct exti_ctx *ctx, pid_t tid, uintptr_t start,
                           struct exti_error *finding)
{
    struct exti_module m;
    char name[32];

    read_thread_name(tid, name, sizeof name);
    exti__fail(finding, EXTI_E_BUSY, EXTI_NO_OFFSET,
               start ? "thread %ld '%s', which this has started, is still running"
                     : "thread %ld '%s' of the program is still in it",
               (long)tid, name);
    if (start && exti__address_map_find(start, &m))
        exti__error_file(finding, m.lib.path);
    else
        exti__error_file(finding, ctx->api ? ctx->api->copy : "");
}
