/* The threads that may run a context's code: those that its copies have started, and those of the
 * program that are in it.  Known from the copies' calls of the thread library, which are bound to
 * interpose/thread_calls.c.  ELF systems.  Any thread. */
#ifndef LOADER_TRACK_CONTEXT_THREADS_H
#define LOADER_TRACK_CONTEXT_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <extisolate.h>

struct exti_ctx;

#if !defined(__APPLE__) && !defined(_WIN32)

#include <pthread.h>
#include <sys/types.h>

struct exti_ctx_thread;

/* Installs the fork handlers.  To be called before any copy is loaded, whose own may come here. */
void exti__ctx_threads_survive_forks(void);

/* Adds a thread that a copy is starting with the routine `start`; NULL without memory. */
struct exti_ctx_thread *exti__ctx_thread_new(const struct exti_ctx *ctx, uintptr_t start);
void exti__ctx_thread_cancel(struct exti_ctx_thread *t); /* it could not be started */
void exti__ctx_thread_enter(struct exti_ctx_thread *t);  /* called on the thread itself */
void exti__ctx_thread_leave(void *t);                    /* its start routine has ended */

/* Whether a copy of the context has started the calling thread.  Async-signal-safe. */
bool exti__ctx_thread_is_own(const struct exti_ctx *ctx);

/* The calling thread's value under a key of the context is set, or cleared.  False without
 * memory. */
bool exti__ctx_thread_set_value(const struct exti_ctx *ctx, pthread_key_t key, bool set);

/* How often threads were detached from contexts.  Until that is another number, a value that is set
 * again need not be told. */
unsigned long exti__ctx_threads_detachings(void);

/* The context has deleted the key: other threads that have a value there are inside the context. */
void exti__ctx_thread_values_dropped(const struct exti_ctx *ctx, pthread_key_t key);

/* The context that the calling thread runs code of, if it is known to be in just one; else NULL. */
const struct exti_ctx *exti__ctx_threads_only(void);

/* The thread (0: the calling one) is not in the context any more, whatever values it has left under
 * its keys. */
void exti__ctx_thread_detached(const struct exti_ctx *ctx, uint64_t thread);

/* Waits up to some seconds for the context's threads that are about to end.  Whether some live that
 * the functions of its copies for the exit of a process stop, and no others; then these are to be
 * called next (exti__exit_handlers_run), and those threads count as about to end. */
bool exti__ctx_threads_stop_at_exit(const struct exti_ctx *ctx);

/* Waits up to some seconds for the context's threads that are about to end, then describes those
 * that live to `report`, whose result does not matter, and counts them. */
size_t exti__ctx_threads_report(const struct exti_ctx *ctx, exti_report_fn report, void *user);

/* To be called before the context is freed. */
void exti__ctx_threads_forget(const struct exti_ctx *ctx);

#else

static inline void exti__ctx_threads_survive_forks(void)
{
}
static inline void exti__ctx_thread_detached(const struct exti_ctx *ctx, uint64_t thread)
{
    (void)ctx, (void)thread;
}
static inline bool exti__ctx_threads_stop_at_exit(const struct exti_ctx *ctx)
{
    (void)ctx;
    return false;
}
static inline size_t exti__ctx_threads_report(const struct exti_ctx *ctx, exti_report_fn report,
                                              void *user)
{
    (void)ctx, (void)report, (void)user;
    return 0;
}
static inline void exti__ctx_threads_forget(const struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
