/* The thread-specific keys of contexts.  A process has few (glibc 1024, musl 128), of which each
 * context would take some, so copies get keys of the library's own, whose numbers the system does
 * not use.  The end of any thread runs their destructors, which are code of a copy.  ELF systems.
 * Any thread. */
#ifndef LOADER_TRACK_CONTEXT_KEYS_H
#define LOADER_TRACK_CONTEXT_KEYS_H

#include <stdbool.h>

#include <extisolate.h>

struct exti_ctx;

#if !defined(__APPLE__) && !defined(_WIN32)

#include <limits.h>
#include <pthread.h>

/* To be called before any copy is loaded.  Installs the fork handlers, which come before those of
 * copies, and takes the one key of the system's that all contexts need.  EXTI_E_LOAD if the process
 * has none left. */
int exti__ctx_keys_prepare(struct exti_error *err);

/* pthread_key_create and so on for copies of `ctx`: 0 or an errno value.  A key of the system's
 * works in none of the others but in exti__ctx_key_is_own. */
int exti__ctx_key_create(const struct exti_ctx *ctx, pthread_key_t *out, void (*destroy)(void *));
int exti__ctx_key_delete(pthread_key_t key);
int exti__ctx_key_set(pthread_key_t key, const void *value);
/* NULL too if there is no such key.  Async-signal-safe. */
void *exti__ctx_key_get(pthread_key_t key);

static inline bool exti__ctx_key_is_own(pthread_key_t key)
{
    return key >= PTHREAD_KEYS_MAX;
}

/* Takes the calling thread's values from the context's keys that have destructors, which are not to
 * run when it ends.  Async-signal-safe. */
void exti__ctx_keys_leave(const struct exti_ctx *ctx);

/* Takes the destructors, and with them the threads' values, from the keys that the context has not
 * deleted, so that no thread's end runs them later.  The keys exist until exti__ctx_keys_delete,
 * after the unload: its finalisers, as libhdf5's, may use them.  Waits up to some seconds for
 * destructors that run on other threads; false, with what is to be reported, if they go on. */
bool exti__ctx_keys_disarm(const struct exti_ctx *ctx, struct exti_error *finding);
void exti__ctx_keys_delete(const struct exti_ctx *ctx);

/* To be called before the context is freed. */
void exti__ctx_keys_forget(const struct exti_ctx *ctx);

#else

static inline int exti__ctx_keys_prepare(struct exti_error *err)
{
    (void)err;
    return 0;
}
static inline bool exti__ctx_keys_disarm(const struct exti_ctx *ctx, struct exti_error *finding)
{
    (void)ctx, (void)finding;
    return true;
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
