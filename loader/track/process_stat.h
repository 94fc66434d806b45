/* What the kernel tells of a process.  Linux.  Any thread, signal handlers included; no
 * cancellation point. */
#ifndef LOADER_TRACK_PROCESS_STAT_H
#define LOADER_TRACK_PROCESS_STAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct exti_process_stat {
    char state;   /* of the first thread: R runs or is about to; proc(5) */
    pid_t parent; /* 0: it is of another PID namespace */
};

/* False: there is no such process, or no /proc. */
bool exti__process_stat(pid_t pid, struct exti_process_stat *out);

/* The signals that the first thread blocks: bit sig - 1.  0 without /proc. */
uint64_t exti__process_blocked(pid_t pid);

#endif
