#include "loader/load/initialise.h"

#include "loader/process/constructors.h"

/* On the stack of a thread that waits, or that has not woken yet. */
struct exti_init_wait {
    pthread_t thread;
    const struct exti_module *m; /* the thread has a reference */
    const struct exti_init_wait *next;
};

void exti__initialise_later(struct exti_opening *o, struct exti_module *m)
{
    o->initialisation.thread = pthread_self();
    m->pending = &o->initialisation;
}

static const struct exti_init_wait *wait_of(const struct exti_ctx *ctx, pthread_t thread)
{
    const struct exti_init_wait *w = ctx->waits;

    while (w && !pthread_equal(w->thread, thread))
        w = w->next;
    return w;
}

/* Whether the thread that runs the module's constructors is the calling one, or waits for it: a
 * constructor may open a library whose constructors, on another thread, open this one's. */
static bool depends_on_caller(const struct exti_ctx *ctx, const struct exti_module *m)
{
    while (m->pending && !pthread_equal(m->pending->thread, pthread_self())) {
        const struct exti_init_wait *w = wait_of(ctx, m->pending->thread);

        if (!w)
            return false;
        m = w->m;
    }
    return m->pending != NULL;
}

/* ctx->lock is held, and let go while this waits. */
static void await_locked(struct exti_ctx *ctx, const struct exti_module *m)
{
    struct exti_init_wait w = {pthread_self(), m, ctx->waits};
    const struct exti_init_wait **link = &ctx->waits;

    if (!m->pending || depends_on_caller(ctx, m))
        return;
    ctx->waits = &w;
    while (m->pending && !depends_on_caller(ctx, m))
        pthread_cond_wait(&ctx->changed, &ctx->lock);
    while (*link != &w)
        link = (const struct exti_init_wait **)&(*link)->next;
    *link = w.next;
}

void exti__await_initialised(const struct exti_module *m)
{
    pthread_mutex_lock(&m->ctx->lock);
    await_locked(m->ctx, m);
    pthread_mutex_unlock(&m->ctx->lock);
}

/* ctx->lock is held, and let go while constructors run: they may open libraries, and fork. */
static void start_module(struct exti_ctx *ctx, struct exti_module *m)
{
    struct exti_constructors constructors;

    m->started = true;
    exti__constructors_take(&m->lib, &m->layout, &constructors);
    pthread_mutex_unlock(&ctx->lock);
    exti__constructors_run(&constructors);
    pthread_mutex_lock(&ctx->lock);
}

void exti__initialise(struct exti_ctx *ctx, struct exti_opening *o)
{
    pthread_mutex_lock(&ctx->lock);
    for (size_t i = 0; i < o->ordered; i++) {
        struct exti_module *m = o->places[o->order[i]].m;

        if (!m)
            continue;
        await_locked(ctx, m);
        /* Those of an opening that this one is nested in come now, as they would with ld.so. */
        if (m->pending && !m->started && pthread_equal(m->pending->thread, pthread_self()))
            start_module(ctx, m);
    }
    for (size_t i = 0; i < o->ordered; i++) {
        struct exti_module *m = o->places[o->order[i]].m;

        if (m && m->pending == &o->initialisation)
            m->pending = NULL;
    }
    pthread_cond_broadcast(&ctx->changed);
    pthread_mutex_unlock(&ctx->lock);
}
