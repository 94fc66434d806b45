#include "runtime/embed/context.h"

#include <stdlib.h>

#include "runtime/fail.h"
#include "runtime/system.h"
#include <extisolate/link.h>

static struct extipy_ctx *contexts;
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

struct extipy_ctx *extipy__context_new(void)
{
    struct extipy_ctx *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    atomic_init(&c->refs, 1);
    atomic_init(&c->exit_status, -1);
    atomic_init(&c->inside, 0);
    pthread_mutex_init(&c->lock, NULL);
    pyrt_cond_init(&c->changed);
    pyrt_cond_init(&c->jobs.work);
    return c;
}

struct extipy_ctx *extipy__context_ref(struct extipy_ctx *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void extipy__context_unref(struct extipy_ctx *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    exti_links_close(c->links);
    pthread_cond_destroy(&c->jobs.work);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

int extipy_exit_status(const struct extipy_ctx *c)
{
    return atomic_load(&c->exit_status);
}

int extipy__exited(const struct extipy_ctx *c, struct exti_error *err)
{
    return pyrt_fail(err, EXTIPY_E_EXITED,
                     "the context has ended: code in it has called exit, _exit or exec, and its "
                     "status is %d",
                     atomic_load(&c->exit_status));
}

/* ---- who is inside ---- */

/* The lowest bit of `inside` is set from when somebody may wait for those inside, or the context
 * has exited; above it is their number.  Until then they come and go without the lock. */
#define WATCHED ((size_t)1)
#define ONE ((size_t)2)

void extipy__context_watch(struct extipy_ctx *c)
{
    atomic_fetch_or(&c->inside, WATCHED);
}

size_t extipy__context_inside(const struct extipy_ctx *c)
{
    return atomic_load(&c->inside) / ONE;
}

/* Returns 0 if that is to be done with the lock. */
static int change_unwatched(struct extipy_ctx *c, size_t by)
{
    size_t n = atomic_load_explicit(&c->inside, memory_order_relaxed);

    while (!(n & WATCHED))
        if (atomic_compare_exchange_weak(&c->inside, &n, n + by))
            return 1;
    return 0;
}

static int begin_watched(struct extipy_ctx *c, enum extipy_phase last, struct exti_error *err)
{
    int open, exited;

    /* Under the lock, as whoever keeps the GIL for ever sees who is inside by then. */
    pthread_mutex_lock(&c->lock);
    exited = extipy__has_exited(c);
    open = !exited && c->phase <= last;
    if (open)
        atomic_fetch_add(&c->inside, ONE);
    pthread_mutex_unlock(&c->lock);
    if (exited)
        return extipy__exited(c, err);
    return open ? 0 : pyrt_fail(err, EXTIPY_E_CLOSED, "the context is closed");
}

int extipy__context_begin_visit(struct extipy_ctx *c, enum extipy_phase last,
                                struct exti_error *err)
{
    return change_unwatched(c, ONE) ? 0 : begin_watched(c, last, err);
}

int extipy__has_emptied(const struct extipy_ctx *c)
{
    return extipy__has_exited(c) && extipy__context_inside(c) <= c->stuck + c->leaving;
}

/* The lock is held. */
static void take_one_out(struct extipy_ctx *c)
{
    size_t left = (atomic_fetch_sub(&c->inside, ONE) - ONE) / ONE;

    if ((left <= c->stuck && c->phase == EXTIPY_CLOSING) || extipy__has_emptied(c))
        pthread_cond_broadcast(&c->changed);
}

static void end_watched(struct extipy_ctx *c, int detached)
{
    pthread_mutex_lock(&c->lock);
    if (c->jobs.abandoned && pthread_equal(c->jobs.worker, pthread_self()))
        c->stuck = 0; /* it has come back */
    c->attached -= detached != 0;
    take_one_out(c);
    pthread_mutex_unlock(&c->lock);
}

void extipy__context_end_visit(struct extipy_ctx *c, int detached)
{
    if (detached || !change_unwatched(c, 0 - ONE))
        end_watched(c, detached);
}

void extipy__contexts_add(struct extipy_ctx *c)
{
    pthread_mutex_lock(&contexts_lock);
    c->next = contexts;
    contexts = c;
    pthread_mutex_unlock(&contexts_lock);
}

void extipy__contexts_remove(struct extipy_ctx *c)
{
    struct extipy_ctx **link = &contexts;

    pthread_mutex_lock(&contexts_lock);
    while (*link != c)
        link = &(*link)->next;
    *link = c->next;
    pthread_mutex_unlock(&contexts_lock);
}

struct extipy_ctx *extipy__contexts_native(void)
{
    struct extipy_ctx *c;

    pthread_mutex_lock(&contexts_lock);
    for (c = contexts; c; c = c->next)
        if (c->calls.PyGILState_GetThisThreadState())
            break;
    if (c)
        extipy__context_ref(c);
    pthread_mutex_unlock(&contexts_lock);
    return c;
}

/* ---- the public calls ---- */

struct exti_ctx *extipy_loader(const struct extipy_ctx *c)
{
    return c ? c->loader : NULL;
}

int extipy_directory(const struct extipy_ctx *c, struct exti_error *err)
{
    if (!c)
        return pyrt_fail(err, EXTI_E_ARG, "the context is NULL");
    if (c->has_directory)
        return 0;
    if (err)
        *err = c->directory_error;
    return c->directory_error.code;
}

int extipy_pin(struct extipy_ctx *c, struct exti_error *err)
{
    if (!c)
        return pyrt_fail(err, EXTI_E_ARG, "the context is NULL");
    return extipy__context_begin_visit(c, EXTIPY_OPEN, err);
}

void extipy_unpin(struct extipy_ctx *c)
{
    if (change_unwatched(c, 0 - ONE))
        return;
    pthread_mutex_lock(&c->lock);
    take_one_out(c);
    pthread_mutex_unlock(&c->lock);
}
