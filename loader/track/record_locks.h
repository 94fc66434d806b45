/* The POSIX record locks of contexts.  The system has one owner for a process, or rather for its
 * table of descriptors; contexts are to exclude each other as processes do.  So each context has,
 * for each file that it locks, an open file description that the library keeps, and locks that
 * (fcntl(2), "Open file description locks").  The system arbitrates between descriptions, and
 * between them and the locks of other processes.  Linux.  Any thread. */
#ifndef LOADER_TRACK_RECORD_LOCKS_H
#define LOADER_TRACK_RECORD_LOCKS_H

#include <stdbool.h>
#include <stddef.h>

#include "loader/track/lock_ranges.h"

struct exti_ctx;

#if !defined(__APPLE__) && !defined(_WIN32)

#include <sys/types.h>

/* Installs the fork handlers.  To be called before any copy is loaded, whose own may come here. */
void exti__record_locks_survive_forks(void);

/* What the calls return besides 0 and an errno: the system's own call is to be made, as this is a
 * vfork child, or as the system or the file has no such locks. */
#define EXTI_LOCK_BY_SYSTEM (-1)

/* Locks or, if its kind is EXTI_LOCK_NONE, unlocks a range for the context, as F_SETLK, or F_SETLKW
 * if `wait`. */
int exti__record_lock(const struct exti_ctx *ctx, int fd, const struct exti_lock_range *range,
                      bool wait);

/* As F_GETLK: if another owner's lock is in the way it is written to *range, and its process to
 * *pid, or -1 if the system does not know it; otherwise the range's kind becomes
 * EXTI_LOCK_NONE. */
int exti__record_lock_test(const struct exti_ctx *ctx, int fd, struct exti_lock_range *range,
                           pid_t *pid);

/* Whether any context of the process has locks: one load. */
bool exti__record_locks_any(void);

/* What a context is about to close. */
struct exti_closing_file {
    const struct exti_ctx *ctx; /* NULL: it has no locks there */
    dev_t dev;
    ino_t ino;
    bool kept; /* the descriptor is one that the library keeps */
};

/* To be called before and after a context closes a descriptor, whichever of the file's that is: the
 * context's locks on the file are dropped (POSIX close). */
void exti__record_locks_closing(const struct exti_ctx *ctx, int fd, struct exti_closing_file *out);
void exti__record_locks_closed(const struct exti_closing_file *closing);

/* The first descriptor from `fd` on that the library keeps, or -1. */
int exti__record_locks_next_kept(int fd);

/* Frees the number for a context that has chosen it itself.  False if that is impossible. */
bool exti__record_locks_vacate(int fd);

/* Drops all locks of the context.  To be called before it is freed. */
void exti__record_locks_forget(const struct exti_ctx *ctx);

#else

static inline void exti__record_locks_survive_forks(void)
{
}
static inline void exti__record_locks_forget(const struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
