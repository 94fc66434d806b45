/* The C++ thread-local objects of contexts, which are destroyed when their thread ends, or before
 * that when the context does, as C++ makes an object once for a thread.  Known from the copies'
 * calls of __cxa_thread_atexit, which are bound to interpose/thread_calls.c.  ELF systems.  Any
 * thread. */
#ifndef LOADER_TRACK_THREAD_OBJECTS_H
#define LOADER_TRACK_THREAD_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

struct exti_ctx;
struct exti_module;

#if !defined(__APPLE__) && !defined(_WIN32)

/* Installs the fork handlers.  To be called before any copy is loaded. */
void exti__thread_objects_survive_forks(void);

/* The calling thread has the object, of the module; until it is destroyed the module's file stays
 * mapped.  False without memory, or if there is no such file. */
bool exti__thread_object_add(const struct exti_module *m, void (*destroy)(void *), void *object);

/* The thread (0: the calling one) has left the context: objects that it has by now may be destroyed
 * by whoever closes that. */
void exti__thread_objects_detach(const struct exti_ctx *ctx, uint64_t thread);

/* Destroys the context's objects of threads that have left it, and the calling thread's; of each
 * the newest first.  Waits some seconds at most for threads that are destroying theirs. */
void exti__thread_objects_end(const struct exti_ctx *ctx);

/* Destroys the calling thread's, as exit(3) does. */
void exti__thread_objects_exit(const struct exti_ctx *ctx);

/* The context has ended alone: no thread is to destroy its objects any more.  Async-signal-safe
 * where the thread holds no lock of the library. */
void exti__thread_objects_drop(const struct exti_ctx *ctx);

/* Whether a living thread has objects of the context. */
bool exti__thread_objects_remain(const struct exti_ctx *ctx);

/* To be called before the context is freed: objects that remain are destroyed with their thread. */
void exti__thread_objects_forget(const struct exti_ctx *ctx);

#else

static inline void exti__thread_objects_survive_forks(void)
{
}
static inline void exti__thread_objects_detach(const struct exti_ctx *ctx, uint64_t thread)
{
    (void)ctx, (void)thread;
}
static inline void exti__thread_objects_end(const struct exti_ctx *ctx)
{
    (void)ctx;
}
static inline void exti__thread_objects_forget(const struct exti_ctx *ctx)
{
    (void)ctx;
}

#endif
#endif
