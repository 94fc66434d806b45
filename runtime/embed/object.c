#include "runtime/embed/object.h"

#include <stdlib.h>

#include <extisolate/link.h>

/* ---- links ---- */

/* A handle is what the program, as the host, has of an object.  It has a reference of its own,
 * which the context releases after the link has ended: so the table need not know how objects are
 * laid out, and never finds that the last reference was its own. */
static int64_t count(void *user, const void *native)
{
    (void)user;
    (void)native;
    return INT64_MAX;
}

static void add(void *user, void *native, int64_t n)
{
    (void)user;
    (void)native;
    (void)n;
}

/* Handles are counted, so that none is ever to be made strong or weak. */
static int strengthen(void *user, exti_host_word object)
{
    (void)user;
    (void)object;
    return 0;
}

static void weaken(void *user, exti_host_word object)
{
    (void)user;
    (void)object;
}

int extipy__objects_begin(struct extipy_ctx *c)
{
    const struct exti_links_opts opts = {
        .size = sizeof opts,
        .natives = {.count = count, .add = add},
        .toggling = {.strengthen = strengthen, .weaken = weaken},
    };

    return exti_links_open(&c->links, &opts, NULL) == 0;
}

/* ---- handles ---- */

/* Not if its last reference has gone, though the context has not released it yet. */
static int keep_living(struct extipy_object *h)
{
    size_t refs = atomic_load(&h->refs);

    while (refs && !atomic_compare_exchange_weak(&h->refs, &refs, refs + 1))
        ;
    return refs != 0;
}

static struct extipy_object *make(struct extipy_ctx *c, struct pyobj *object)
{
    struct extipy_object *h = calloc(1, sizeof *h);

    if (!h)
        return NULL;
    if (exti_link_native(c->links, (exti_host_word)h, object) < 0) {
        free(h);
        return NULL;
    }
    h->number = exti_link_number(c->links, object);
    atomic_init(&h->refs, 1);
    c->py.Py_IncRef(object);
    h->object = object;
    h->ctx = extipy__context_ref(c);
    pthread_mutex_lock(&c->lock);
    h->next = c->objects;
    if (h->next)
        h->next->prev = h;
    c->objects = h;
    pthread_mutex_unlock(&c->lock);
    return h;
}

struct extipy_object *extipy__object_new(struct extipy_ctx *c, struct pyobj *object)
{
    struct extipy_object *h = (struct extipy_object *)exti_link_to_host(c->links, object);

    return h && keep_living(h) ? h : make(c, object);
}

/* The context's lock is held. */
static void unlist_object(struct extipy_object *h)
{
    if (h->next)
        h->next->prev = h->prev;
    if (h->prev)
        h->prev->next = h->next;
    else
        h->ctx->objects = h->next;
}

static void free_object(struct extipy_object *h)
{
    extipy__context_unref(h->ctx);
    free(h);
}

struct extipy_object *extipy_object_keep(struct extipy_object *h)
{
    if (h)
        atomic_fetch_add(&h->refs, 1);
    return h;
}

/* The context's lock is held. */
static void queue(struct extipy_ctx *c, struct extipy_object *h)
{
    h->next = c->released;
    c->released = h;
    atomic_store(&c->pending, 1);
    pthread_cond_broadcast(&c->changed);
}

void extipy_object_release(struct extipy_object *h)
{
    struct extipy_ctx *c;
    int ended;

    if (!h || atomic_fetch_sub(&h->refs, 1) != 1)
        return;
    c = h->ctx;
    pthread_mutex_lock(&c->lock);
    ended = h->object == NULL;
    if (!ended) {
        unlist_object(h);
        queue(c, h);
    }
    pthread_mutex_unlock(&c->lock);
    if (ended)
        free_object(h);
}

int extipy_call_soon(struct extipy_ctx *c, void (*function)(void *user), void *user)
{
    struct extipy_object *h = calloc(1, sizeof *h);

    if (!h)
        return EXTI_E_NOMEM;
    h->ctx = extipy__context_ref(c);
    h->soon = function;
    h->user = user;
    pthread_mutex_lock(&c->lock);
    queue(c, h);
    pthread_mutex_unlock(&c->lock);
    return 0;
}

struct extipy_ctx *extipy_object_ctx(const struct extipy_object *h)
{
    return h->ctx;
}

/* Of the handles that are to be released. */
static void end_links(struct extipy_ctx *c, const struct extipy_object *h)
{
    for (; h; h = h->next)
        if (!h->soon)
            exti_link_died(c->links, h->number);
    exti_links_settle(c->links);
}

void extipy__objects_release(struct extipy_ctx *c)
{
    struct extipy_object *h, *next;

    if (!atomic_load(&c->pending))
        return;
    pthread_mutex_lock(&c->lock);
    h = c->released;
    c->released = NULL;
    atomic_store(&c->pending, 0);
    pthread_mutex_unlock(&c->lock);
    end_links(c, h);
    for (; h; h = next) {
        next = h->next;
        /* May run any code, which may release more. */
        if (h->soon)
            h->soon(h->user);
        else
            c->py.Py_DecRef(h->object);
        free_object(h);
    }
}

/* Takes the object out of a living handle. */
static struct pyobj *take_object(struct extipy_ctx *c)
{
    struct pyobj *object = NULL;
    uint32_t number = 0;

    pthread_mutex_lock(&c->lock);
    if (c->objects) {
        object = c->objects->object;
        number = c->objects->number;
        c->objects->object = NULL;
        unlist_object(c->objects);
    }
    pthread_mutex_unlock(&c->lock);
    if (object) {
        exti_link_died(c->links, number);
        exti_links_settle(c->links);
    }
    return object;
}

void extipy__objects_end(struct extipy_ctx *c)
{
    struct pyobj *object;

    do {
        extipy__objects_release(c);
        object = take_object(c);
        c->py.Py_DecRef(object);
    } while (object || atomic_load(&c->pending));
}
