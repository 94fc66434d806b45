/* Handles of objects that stay in their context, and their release by that context; and whatever
 * else it is to do in the same way. */
#ifndef RUNTIME_EMBED_OBJECT_H
#define RUNTIME_EMBED_OBJECT_H

#include "runtime/embed/context.h"

struct extipy_object {
    atomic_size_t refs;       /* 0: it is in the queue, or about to be */
    uint32_t number;          /* of its link */
    struct extipy_ctx *ctx;   /* a reference */
    struct pyobj *object;     /* a reference; NULL once the context has ended */
    void (*soon)(void *user); /* to be called instead: it is in the queue from the beginning */
    void *user;
    /* In the context's list of living ones, then in its queue of those to release. */
    struct extipy_object *next, *prev;
};

/* Makes the table of a new context's links; false: no memory. */
int extipy__objects_begin(struct extipy_ctx *c);

/* The handle of an object, with a reference; the thread is inside.  NULL: no memory. */
struct extipy_object *extipy__object_new(struct extipy_ctx *c, struct pyobj *object);

/* Releases what is in the queue; the thread has the GIL. */
void extipy__objects_release(struct extipy_ctx *c);
/* The same for all objects, before finalisation. */
void extipy__objects_end(struct extipy_ctx *c);

#endif
