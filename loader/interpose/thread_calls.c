#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "loader/interpose/thread_calls.h"

#include <errno.h>
#include <string.h>
#include <threads.h>

#include "base/mem.h"
#include "loader/process/guarded_dl.h"
#include "loader/track/address_map.h"
#include "loader/track/calls.h"
#include "loader/track/context_keys.h"
#include "loader/track/context_threads.h"
#include "loader/track/redirects.h"
#include "loader/track/surroundings.h"
#include "loader/track/thread_objects.h"

/* Begins a call that gives a function to the thread library, and returns its context: by the
 * function's address or, if that is another library's, by the caller's.  NULL: none. */
static const struct exti_ctx *begin_call(struct exti_call *c, uintptr_t function, const void *call)
{
    struct exti_module m;

    if (exti__call_begin_note(c, function, &m) || exti__call_begin_note(c, (uintptr_t)call, &m))
        return m.ctx;
    return NULL;
}

#define CALL __builtin_return_address(0)

/* ---- threads ---- */

struct launch {
    struct exti_ctx_thread *thread;
    struct exti_surroundings *surroundings;
    struct exti_directory_start directory;

    /* One of the two; neither for a std::thread, whose state is `arg`. */
    void *(*start)(void *arg);
    thrd_start_t start_c11;
    void *arg;
};

/* The call that starts a C++ library's thread is in libstdc++, which is no copy, so the thread is
 * recognised by its state.  Itanium C++ ABI: the virtual functions of std::thread::_State */
struct cxx_state {
    const struct {
        void (*destroy)(struct cxx_state *), (*delete)(struct cxx_state *);
        void (*run)(struct cxx_state *);
    } *functions;
};

#define CXX_START                                                                                  \
    "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE"

static void *call_start(const struct launch *l)
{
    struct cxx_state *state = l->arg;

    if (l->start)
        return l->start(l->arg);
    if (l->start_c11)
        return (void *)(intptr_t)l->start_c11(l->arg);
    state->functions->run(state);
    state->functions->delete (state);
    return NULL;
}

static void *run_ctx_thread(void *arg)
{
    struct launch l = *(struct launch *)arg;
    void *result;

    exti__free(arg);
    exti__directory_begin(&l.directory);
    exti__surroundings_enter(l.surroundings);
    exti__ctx_thread_enter(l.thread);
    pthread_cleanup_push(exti__ctx_thread_leave, l.thread); /* runs after pthread_exit too */
    result = call_start(&l);
    pthread_cleanup_pop(1);
    return result;
}

/* pthread_create of a context's thread.  `what` lacks the thread, and its surroundings. */
static int launch_thread(const struct exti_ctx *ctx, uintptr_t start, pthread_t *out,
                         const pthread_attr_t *attr, const struct launch *what)
{
    struct launch *l = exti__alloc(sizeof *l);
    struct exti_ctx_thread *thread = l ? exti__ctx_thread_new(ctx, start) : NULL;
    int rc;

    if (!thread) {
        exti__free(l);
        return EAGAIN;
    }
    *l = *what;
    l->thread = thread;
    l->surroundings = ctx->surroundings;
    rc = exti__directory_create(l->surroundings ? l->surroundings->directory : NULL, &l->directory,
                                out, attr, run_ctx_thread, l);
    if (rc) {
        exti__ctx_thread_cancel(thread);
        exti__free(l);
    }
    return rc;
}

static int interposed_pthread_create(pthread_t *out, const pthread_attr_t *attr,
                                     void *(*start)(void *), void *arg)
{
    const struct launch what = {.start = start, .arg = arg};
    struct exti_call call;
    const struct exti_ctx *ctx = begin_call(&call, (uintptr_t)start, CALL);
    int rc;

    if (!ctx)
        return pthread_create(out, attr, start, arg);
    rc = launch_thread(ctx, (uintptr_t)start, out, attr, &what);
    exti__call_end(&call);
    return rc;
}

/* In glibc and musl thrd_t is pthread_t, and a thread's int result is cast to a pointer. */
static int interposed_thrd_create(thrd_t *out, thrd_start_t start, void *arg)
{
    const struct launch what = {.start_c11 = start, .arg = arg};
    struct exti_call call;
    const struct exti_ctx *ctx = begin_call(&call, (uintptr_t)start, CALL);
    int rc;

    if (!ctx)
        return thrd_create(out, start, arg);
    rc = launch_thread(ctx, (uintptr_t)start, out, NULL, &what);
    exti__call_end(&call);
    switch (rc) {
    case 0:
        return thrd_success;
    case EAGAIN:
        return thrd_nomem;
    default:
        return thrd_error;
    }
}

/* Itanium C++ ABI: a member function's first argument is its object, and a unique_ptr is passed by
 * address. */
static void interposed_cxx_start(pthread_t *thread, struct cxx_state **owned, void (*depends)(void))
{
    const uintptr_t start = (uintptr_t)(*owned)->functions->run;
    const struct launch what = {.arg = *owned};
    struct exti_call call;
    const struct exti_ctx *ctx = begin_call(&call, start, CALL);
    void (*real)(pthread_t *, struct cxx_state **, void (*)(void));
    struct exti_module caller;
    bool launched = false;
    void *p;

    if (ctx) {
        launched = launch_thread(ctx, start, thread, NULL, &what) == 0;
        exti__call_end(&call);
    }
    if (launched) {
        *owned = NULL;
        return;
    }
    /* Throws if it fails too. */
    p = exti__dlsym(exti__address_map_find((uintptr_t)CALL, &caller) ? caller.handle : RTLD_DEFAULT,
                    CXX_START);
    memcpy(&real, &p, sizeof real);
    real(thread, owned, depends);
}

/* ---- C++ thread-local objects ---- */

/* In glibc; musl lacks it. */
extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library)
    __attribute__((weak));

static int interposed_thread_atexit(void (*destroy)(void *), void *object, void *library)
{
    struct exti_call call;
    struct exti_module m;
    bool added = false;

    if (exti__call_begin_note(&call, (uintptr_t)library, &m) ||
        exti__call_begin_note(&call, (uintptr_t)CALL, &m)) {
        added = exti__thread_object_add(&m, destroy, object);
        exti__call_end(&call);
    }
    return added ? 0 : __cxa_thread_atexit_impl(destroy, object, library);
}

/* ---- keys ---- */

/* In glibc and musl tss_t is pthread_key_t, and a key of one kind works as one of the other. */
_Static_assert(sizeof(tss_t) == sizeof(pthread_key_t), "tss_t is pthread_key_t");

/* False: the caller is no copy's. */
static bool create_key(pthread_key_t *out, void (*destroy)(void *), const void *caller, int *rc)
{
    struct exti_call call;
    const struct exti_ctx *ctx = begin_call(&call, (uintptr_t)destroy, caller);

    if (!ctx)
        return false;
    *rc = exti__ctx_key_create(ctx, out, destroy);
    exti__call_end(&call);
    return true;
}

static int interposed_key_create(pthread_key_t *out, void (*destroy)(void *))
{
    int rc;

    return create_key(out, destroy, CALL, &rc) ? rc : pthread_key_create(out, destroy);
}

static int interposed_key_delete(pthread_key_t key)
{
    return exti__ctx_key_is_own(key) ? exti__ctx_key_delete(key) : pthread_key_delete(key);
}

static void *interposed_getspecific(pthread_key_t key)
{
    return exti__ctx_key_is_own(key) ? exti__ctx_key_get(key) : pthread_getspecific(key);
}

static int interposed_setspecific(pthread_key_t key, const void *value)
{
    return exti__ctx_key_is_own(key) ? exti__ctx_key_set(key, value)
                                     : pthread_setspecific(key, value);
}

static int interposed_tss_create(tss_t *out, tss_dtor_t destroy)
{
    int rc;

    if (!create_key(out, destroy, CALL, &rc))
        return tss_create(out, destroy);
    return rc ? thrd_error : thrd_success;
}

static void interposed_tss_delete(tss_t key)
{
    if (exti__ctx_key_is_own(key))
        exti__ctx_key_delete(key);
    else
        tss_delete(key);
}

static void *interposed_tss_get(tss_t key)
{
    return exti__ctx_key_is_own(key) ? exti__ctx_key_get(key) : tss_get(key);
}

static int interposed_tss_set(tss_t key, void *value)
{
    if (!exti__ctx_key_is_own(key))
        return tss_set(key, value);
    return exti__ctx_key_set(key, value) ? thrd_error : thrd_success;
}

/* ---- looking them up ---- */

void *exti__thread_call(const char *symbol)
{
    void *thread_atexit = __cxa_thread_atexit_impl ? EXTI_ADDRESS(interposed_thread_atexit) : NULL;
    const struct exti_redirect calls[] = {
        {"pthread_create", EXTI_ADDRESS(interposed_pthread_create)},
        {"thrd_create", EXTI_ADDRESS(interposed_thrd_create)},
        {CXX_START, EXTI_ADDRESS(interposed_cxx_start)},
        {"__cxa_thread_atexit", thread_atexit},
        {"__cxa_thread_atexit_impl", thread_atexit},
        {"pthread_key_create", EXTI_ADDRESS(interposed_key_create)},
        {"__pthread_key_create", EXTI_ADDRESS(interposed_key_create)},
        {"pthread_key_delete", EXTI_ADDRESS(interposed_key_delete)},
        {"pthread_getspecific", EXTI_ADDRESS(interposed_getspecific)},
        {"pthread_setspecific", EXTI_ADDRESS(interposed_setspecific)},
        {"tss_create", EXTI_ADDRESS(interposed_tss_create)},
        {"tss_delete", EXTI_ADDRESS(interposed_tss_delete)},
        {"tss_get", EXTI_ADDRESS(interposed_tss_get)},
        {"tss_set", EXTI_ADDRESS(interposed_tss_set)},
    };

    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
