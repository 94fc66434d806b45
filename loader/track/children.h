/* The child processes that copies have started: a context waits for its own alone, and gets what
 * they send to the process.  No lock: any thread, signal handlers and children of vfork(2)
 * included.  ELF systems. */
#ifndef LOADER_TRACK_CHILDREN_H
#define LOADER_TRACK_CHILDREN_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Installs the fork handler; 0 or an errno value.  To be called before any copy is loaded. */
int exti__children_survive_forks(void);

/* The calling thread, which blocks signals, begins to start a child, which may send signals before
 * its number is known; and has started it for the context, which may be NULL.  `pid`: 0 or below
 * where none was started.  The result of the one is for the other. */
uint64_t exti__child_starts(void);
void exti__child_started(struct exti_ctx *ctx, pid_t pid, uint64_t number);

/* The context has started the child: told by the child of a vfork(2), which has its parent's
 * memory, and by the parent.  Without memory it is not known, and waited for only by its number. */
void exti__child_add(struct exti_ctx *ctx, pid_t pid);

void exti__child_ended(pid_t pid); /* and has been waited for */

/* Writes as many of the context's children into `out` as there is room for, and returns how many
 * there are. */
size_t exti__children_of(const struct exti_ctx *ctx, pid_t *out, size_t room);

/* What the context's children send from now on is for these, which it has only now. */
void exti__children_signal(const struct exti_ctx *ctx, struct exti_signals *signals);

/* Waits for those of the context's children that have ended, so that they are gone. */
void exti__children_drop_ended(const struct exti_ctx *ctx);

/* Whether what a child of the context has sent may still come, or one is being started. */
bool exti__children_may_send(const struct exti_ctx *ctx);

struct exti_child {
    struct exti_signals *signals; /* of the context that has started it */
    uint64_t started;             /* exti__now */
};

/* A process may be one of a context's children, or one's child, and so on. */
enum exti_kinship {
    EXTI_CHILD_NONE,    /* or it has ended more than a second ago */
    EXTI_CHILD_STARTED, /* it is that of *out */
    EXTI_CHILD_UNKNOWN, /* it is the process's: the program's, or one that is being started */
};

enum exti_kinship exti__child_find(pid_t pid, struct exti_child *out);

/* How many starts have begun, and whether one of the first `number` of them goes on. */
uint64_t exti__children_begun(void);
bool exti__children_start(uint64_t number);

void exti__children_forget(const struct exti_ctx *ctx);

#else

static inline int exti__children_survive_forks(void)
{
    return 0;
}
static inline void exti__children_forget(const struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
