/* The thread-specific keys of contexts: the end of any thread runs their destructors, which are
 * code of a copy.  ELF systems.  Any thread. */
#ifndef LOADER_TRACK_CONTEXT_KEYS_H
#define LOADER_TRACK_CONTEXT_KEYS_H

#include <stdbool.h>

struct exti_ctx;

#if !defined(__APPLE__) && !defined(_WIN32)

#include <pthread.h>

/* Installs the fork handlers.  To be called before any copy is loaded, whose own may come here. */
void exti__ctx_keys_survive_forks(void);

/* A copy of the context has created the key.  `destroys`: with a destructor. */
void exti__ctx_key_created(const struct exti_ctx *ctx, pthread_key_t key, bool destroys);

/* A copy is about to delete the key. */
void exti__ctx_key_deleted(pthread_key_t key);

/* The calling thread is about to give the key a value; false without memory. */
bool exti__ctx_key_value(pthread_key_t key, const void *value);

/* Takes the calling thread's values from the context's keys that have destructors, which are not to
 * run when it ends.  Async-signal-safe in the C libraries that there are. */
void exti__ctx_keys_leave(const struct exti_ctx *ctx);

/* Takes the destructors, and with them the threads' values, from the keys that the context has not
 * deleted, so that no thread's end runs them later.  The keys exist until exti__ctx_keys_delete,
 * after the unload: its finalisers, as libhdf5's, may use them. */
void exti__ctx_keys_disarm(const struct exti_ctx *ctx);
void exti__ctx_keys_delete(const struct exti_ctx *ctx);

/* To be called before the context is freed. */
void exti__ctx_keys_forget(const struct exti_ctx *ctx);

#else

static inline void exti__ctx_keys_survive_forks(void)
{
}
static inline void exti__ctx_keys_disarm(const struct exti_ctx *ctx)
{
    (void)ctx;
}
static inline void exti__ctx_keys_delete(const struct exti_ctx *ctx)
{
    (void)ctx;
}
static inline void exti__ctx_keys_forget(const struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
