/* What copies call for threads and thread-specific keys. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <threads.h>

#include "base/mem.h"
#include "loader/track/context_threads.h"
#include "loader/track/module.h"

/* The context that a function given to the thread library is of: by its own address or, if it is another
 * library's, by that of the call. */
static const struct exti_ctx *context_of(uintptr_t function, const void *call)
{
    struct exti_module m;

    if (exti__address_map_find(function, &m) || exti__address_map_find((uintptr_t)call, &m))
        return m.ctx;
    return NULL;
}

#define CALL __builtin_return_address(0)

/* ---- threads ---- */

struct launch {
    struct exti_ctx_thread *guest;
    void *(*start)(void *arg); /* or */
    thrd_start_t start_c11;    /* or that of a std::thread's state, which is arg */
    void *arg;
};

/* A C++ library's thread has to be found by its state: the call that starts it is in libstdc++, which is
 * no copy.  Itanium C++ ABI: the virtual functions of std::thread::_State. */
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
    exti__ctx_thread_enter(l.guest);
    pthread_cleanup_push(exti__ctx_thread_leave, l.guest); /* after pthread_exit too */
    result = call_start(&l);
    pthread_cleanup_pop(1);
    return result;
}

/* pthread_create with what a launch has but for its guest. */
static int launch(const struct exti_ctx *ctx, uintptr_t start, pthread_t *out,
                  const pthread_attr_t *attr, const struct launch *what)
{
    struct launch *l = exti__alloc(sizeof *l);
    struct exti_ctx_thread *guest = l ? exti__ctx_thread_new(ctx, start) : NULL;
    int rc;

    if (!guest) {
        exti__free(l);
        return EAGAIN;
    }
    *l = *what;
    l->guest = guest;
    rc = pthread_create(out, attr, run_ctx_thread, l);
    if (rc) {
        exti__ctx_thread_cancel(guest);
        exti__free(l);
    }
    return rc;
}

static int interposed_pthread_create(pthread_t *out, const pthread_attr_t *attr,
                                     void *(*start)(void *), void *arg)
{
    const struct exti_ctx *ctx = context_of((uintptr_t)start, CALL);
    const struct launch what = {.start = start, .arg = arg};

    return ctx ? launch(ctx, (uintptr_t)start, out, attr, &what)
               : pthread_create(out, attr, start, arg);
}

/* Both C libraries have pthread_t for thrd_t, and give a thread's int as the pointer that it makes. */
static int interposed_thrd_create(thrd_t *out, thrd_start_t start, void *arg)
{
    const struct exti_ctx *ctx = context_of((uintptr_t)start, CALL);
    const struct launch what = {.start_c11 = start, .arg = arg};

    if (!ctx)
        return thrd_create(out, start, arg);
    switch (launch(ctx, (uintptr_t)start, out, NULL, &what)) {
    case 0:
        return thrd_success;
    case EAGAIN:
        return thrd_nomem;
    default:
        return thrd_error;
    }
}

/* A member function's object is its first argument, and a unique_ptr's address what is passed of it. */
static void interposed_cxx_start(pthread_t *thread, struct cxx_state **owned, void (*depends)(void))
{
    const uintptr_t start = (uintptr_t)(*owned)->functions->run;
    const struct exti_ctx *ctx = context_of(start, CALL);
    const struct launch what = {.arg = *owned};
    void (*real)(pthread_t *, struct cxx_state **, void (*)(void));
    struct exti_module caller;
    void *p;

    if (ctx && launch(ctx, start, thread, NULL, &what) == 0) {
        *owned = NULL;
        return;
    }
    /* Throws if it cannot either. */
    p = dlsym(exti__address_map_find((uintptr_t)CALL, &caller) ? caller.handle : RTLD_DEFAULT,
              CXX_START);
    memcpy(&real, &p, sizeof real);
    real(thread, owned, depends);
}

/* ---- C++ thread-local objects ---- */

/* glibc's; musl has none. */
extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library)
    __attribute__((weak));

static int interposed_thread_atexit(void (*destroy)(void *), void *object, void *library)
{
    const struct exti_ctx *ctx = context_of((uintptr_t)library, CALL);

    if (ctx)
        exti__ctx_thread_has_object(ctx);
    return __cxa_thread_atexit_impl(destroy, object, library);
}

/* ---- keys ---- */

static int interposed_key_create(pthread_key_t *out, void (*destroy)(void *))
{
    const struct exti_ctx *ctx = context_of((uintptr_t)destroy, CALL);
    int rc = pthread_key_create(out, destroy);

    if (!rc && ctx)
        exti__ctx_key_made(ctx, *out);
    return rc;
}

static int interposed_key_delete(pthread_key_t key)
{
    exti__ctx_key_deleted(key);
    return pthread_key_delete(key);
}

static int interposed_setspecific(pthread_key_t key, const void *value)
{
    return exti__ctx_key_value(key, value) ? pthread_setspecific(key, value) : ENOMEM;
}

static int interposed_tss_create(tss_t *out, tss_dtor_t destroy)
{
    const struct exti_ctx *ctx = context_of((uintptr_t)destroy, CALL);
    int rc = tss_create(out, destroy);

    if (rc == thrd_success && ctx)
        exti__ctx_key_made(ctx, *out);
    return rc;
}

static void interposed_tss_delete(tss_t key)
{
    exti__ctx_key_deleted(key);
    tss_delete(key);
}

static int interposed_tss_set(tss_t key, void *value)
{
    return exti__ctx_key_value(key, value) ? tss_set(key, value) : thrd_error;
}

/* ---- what is bound to them ---- */

#define ADDRESS(function) ((void *)(uintptr_t)(function))

void *exti__thread_call(const char *symbol)
{
    void *thread_atexit = __cxa_thread_atexit_impl ? ADDRESS(interposed_thread_atexit) : NULL;
    const struct exti_redirect calls[] = {
        {"pthread_create", ADDRESS(interposed_pthread_create)},
        {"thrd_create", ADDRESS(interposed_thrd_create)},
        {CXX_START, ADDRESS(interposed_cxx_start)},
        {"__cxa_thread_atexit", thread_atexit},
        {"__cxa_thread_atexit_impl", thread_atexit},
        {"pthread_key_create", ADDRESS(interposed_key_create)},
        {"__pthread_key_create", ADDRESS(interposed_key_create)},
        {"pthread_key_delete", ADDRESS(interposed_key_delete)},
        {"pthread_setspecific", ADDRESS(interposed_setspecific)},
        {"tss_create", ADDRESS(interposed_tss_create)},
        {"tss_delete", ADDRESS(interposed_tss_delete)},
        {"tss_set", ADDRESS(interposed_tss_set)},
    };

    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].symbol, symbol) == 0)
            return calls[i].to;
    return NULL;
}
