#include "runtime/embed/context.h"

#include <stdlib.h>

#include "runtime/fail.h"
#include "runtime/system.h"

static struct extipy_ctx *contexts;
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

struct extipy_ctx *extipy__context_new(void)
{
    struct extipy_ctx *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    atomic_init(&c->refs, 1);
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
    pthread_cond_destroy(&c->jobs.work);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

int extipy__context_begin_visit(struct extipy_ctx *c, enum extipy_phase last,
                                struct exti_error *err)
{
    int open;

    pthread_mutex_lock(&c->lock);
    open = c->phase <= last;
    c->inside += open != 0;
    pthread_mutex_unlock(&c->lock);
    return open ? 0 : pyrt_fail(err, EXTIPY_E_CLOSED, "the context is closed");
}

void extipy__context_end_visit(struct extipy_ctx *c, int detached)
{
    pthread_mutex_lock(&c->lock);
    c->inside--;
    c->attached -= detached != 0;
    if (c->inside == 0 && c->phase == EXTIPY_CLOSING)
        pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

int extipy__context_works(struct extipy_ctx *c)
{
    int works;

    pthread_mutex_lock(&c->lock);
    works = c->jobs.started && pthread_equal(c->jobs.worker, pthread_self());
    pthread_mutex_unlock(&c->lock);
    return works;
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
