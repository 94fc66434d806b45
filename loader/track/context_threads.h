/* The threads that may run a context's code beyond the call that is being made: those that its copies
 * have started, those of the host that are in it, and the thread-specific keys whose destructors the end of
 * any thread runs.  Known from the copies' calls of the thread library, which are bound to the functions
 * of guest_calls.c; what an initialiser calls while its copy is being opened is not seen there, but
 * the threads are found in the end.  ELF systems. */
#ifndef LOADER_TRACK_CONTEXT_THREADS_H
#define LOADER_TRACK_CONTEXT_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loader/process/linkmap.h"

struct exti_ctx;

#if !defined(__APPLE__) && !defined(_WIN32)

/* Before any copy is loaded, whose fork handlers may come here. */
void exti__ctx_threads_survive_forks(void);

/* What a copy's reference to `symbol` is to be bound to, or NULL. */
void *exti__thread_call(const char *symbol);

/* Finds the keys that the initialisers of a copy have made, which was opened by this thread and lies there:
 * those under which this thread has something of the copy's own. */
void exti__ctx_keys_find(const struct exti_ctx *ctx, const struct exti_layout *copy);

/* Waits a moment for the threads of the context that are ending, then describes those that live to
 * `report`, whose result does not matter, and counts them. */
size_t exti__ctx_threads_report(const struct exti_ctx *ctx, exti_report_fn report, void *user);

/* Takes their destructors from the keys that the context has left over, so that the end of no thread runs
 * them later, and the threads' values with them.  The keys are still there for its finalisers, as those of
 * libhdf5, until they are deleted after the unload. */
void exti__ctx_keys_disarm(const struct exti_ctx *ctx);
void exti__ctx_keys_delete(const struct exti_ctx *ctx);

/* Whether a living thread has C++ thread-local objects of the context yet to destroy: until then dlclose
 * leaves the library that they belong to mapped. */
bool exti__ctx_threads_have_objects(const struct exti_ctx *ctx);

/* The context is about to be freed. */
void exti__ctx_threads_forget(const struct exti_ctx *ctx);

/* ---- strangers.c ---- */

/* The same of threads that initialisers of the context's copies have started. */
size_t exti__initialiser_threads_report(const struct exti_ctx *ctx, exti_report_fn report,
                                        void *user);

/* Whether a copy of any context has started the thread by a call that was seen. */
bool exti__ctx_thread_is_known(pid_t tid);

/* Says that the thread, which began at `start`, still runs. */
void exti__ctx_thread_describe(const struct exti_ctx *ctx, pid_t tid, uintptr_t start,
                               struct exti_error *finding);

/* ---- for guest_calls.c ---- */

struct exti_ctx_thread;

/* Makes room for a thread that a copy is starting with `start`; NULL without memory. */
struct exti_ctx_thread *exti__ctx_thread_new(const struct exti_ctx *ctx, uintptr_t start);
void exti__ctx_thread_cancel(struct exti_ctx_thread *g); /* it could not be started */
void exti__ctx_thread_enter(struct exti_ctx_thread *g);  /* on the thread itself */
void exti__ctx_thread_leave(void *g);                    /* its start routine has ended */

/* The calling thread has a C++ thread-local object of the context. */
void exti__ctx_thread_has_object(const struct exti_ctx *ctx);

void exti__ctx_key_made(const struct exti_ctx *ctx, pthread_key_t key);

/* A copy is deleting a key. */
void exti__ctx_key_deleted(pthread_key_t key);

/* The calling thread is giving a key a value; false without memory. */
bool exti__ctx_key_value(pthread_key_t key, const void *value);

#else

static inline void exti__ctx_threads_survive_forks(void)
{
}
static inline void *exti__thread_call(const char *symbol)
{
    (void)symbol;
    return NULL;
}
static inline void exti__ctx_keys_find(const struct exti_ctx *ctx, const struct exti_layout *copy)
{
    (void)ctx, (void)copy;
}
static inline size_t exti__ctx_threads_report(const struct exti_ctx *ctx, exti_report_fn report,
                                              void *user)
{
    (void)ctx, (void)report, (void)user;
    return 0;
}
static inline void exti__ctx_keys_disarm(const struct exti_ctx *ctx)
{
    (void)ctx;
}
static inline void exti__ctx_keys_delete(const struct exti_ctx *ctx)
{
    (void)ctx;
}
static inline void exti__ctx_threads_forget(const struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
