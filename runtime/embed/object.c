#include "runtime/embed/object.h"

#include <stdlib.h>

struct extipy_object *extipy__object_new(struct extipy_ctx *c, struct pyobj *object)
{
    struct extipy_object *h = calloc(1, sizeof *h);

    if (!h)
        return NULL;
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

    pthread_mutex_lock(&c->lock);
    if (c->objects) {
        object = c->objects->object;
        c->objects->object = NULL;
        unlist_object(c->objects);
    }
    pthread_mutex_unlock(&c->lock);
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
