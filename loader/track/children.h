/* The child processes that copies have started: a context waits for its own alone.  ELF systems.
 * Any thread, signal handlers included. */
#ifndef LOADER_TRACK_CHILDREN_H
#define LOADER_TRACK_CHILDREN_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

#include <stddef.h>
#include <sys/types.h>

/* Installs the fork handlers; 0 or an errno value.  To be called before any copy is loaded. */
int exti__children_survive_forks(void);

/* The calling thread begins to start a child for the context, or for none: NULL.  The child may
 * send signals before exti__child_started, which must follow, tells which it is. */
void exti__child_starts(const struct exti_ctx *ctx);
/* `pid`: 0 or below where none was started.  Without memory a child is not known, and waited for
 * only by its number. */
void exti__child_started(const struct exti_ctx *ctx, pid_t pid);

/* The context has started the child: told by the child of a vfork(2), which has its parent's
 * memory, and by the parent. */
void exti__child_add(const struct exti_ctx *ctx, pid_t pid);
/* It has been waited for.  Returns when what it has sent has reached the context. */
void exti__child_ended(pid_t pid);

/* Writes as many of the context's children into `out` as there is room for, and returns how many
 * there are. */
size_t exti__children_of(const struct exti_ctx *ctx, pid_t *out, size_t room);

/* The signals of the context that has started the process, or its parent, or that one's parent, and
 * so on; NULL: none has, or it has ended. */
struct exti_signals *exti__child_signals(pid_t pid);

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
