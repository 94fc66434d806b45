/* Starts of children for a context.  ELF systems. */
#ifndef LOADER_INTERPOSE_SPAWN_H
#define LOADER_INTERPOSE_SPAWN_H

#include <signal.h>
#include <spawn.h>
#include <stdint.h>

#include "loader/track/context.h"

struct exti_start {
    sigset_t signals; /* that the thread had blocked */
    uint64_t number;
};

/* Before fork(2) or the like: no signal is handled on this thread until exti__start_end has noted
 * the child.  That is called in the parent and in the child with the result of fork; `ctx` may be
 * NULL.  Keeps errno. */
struct exti_start exti__start_begin(void);
void exti__start_end(const struct exti_start *start, struct exti_ctx *ctx, pid_t pid);

/* posix_spawn or posix_spawnp. */
typedef int (*exti_spawn)(pid_t *pid, const char *program,
                          const posix_spawn_file_actions_t *actions,
                          const posix_spawnattr_t *attributes, char *const argv[],
                          char *const envp[]);

/* Calls it so that the child is known to be the context's as soon as it runs.  `ctx` and `pid` may
 * be NULL. */
int exti__spawn(struct exti_ctx *ctx, exti_spawn spawn, pid_t *pid, const char *program,
                const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                char *const argv[], char *const envp[]);

#endif
