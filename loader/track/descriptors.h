/* The pipes and sockets that copies have made.  Who waits for the end of one waits for each process
 * that holds the other end; so a child that another context forks closes them.  ELF systems.  Any
 * thread, signal handlers included. */
#ifndef LOADER_TRACK_DESCRIPTORS_H
#define LOADER_TRACK_DESCRIPTORS_H

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

#include <signal.h>

/* Installs the fork handlers; 0 or an errno value.  To be called before any copy is loaded. */
int exti__descriptors_survive_forks(void);

/* From one to the other the process is not forked, and no signal is handled: a fork sees what is
 * made meanwhile once it is known. */
void exti__descriptors_begin(sigset_t *signals);
void exti__descriptors_end(const sigset_t *signals);

/* In between.  Without memory a descriptor is not known, and children of all contexts hold it. */
void exti__descriptor_made(const struct exti_ctx *ctx, int fd);

void exti__descriptors_forget(const struct exti_ctx *ctx);

#else

static inline int exti__descriptors_survive_forks(void)
{
    return 0;
}
static inline void exti__descriptors_forget(const struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
