/* Gives memory of a context's objects to others. */
#include <stdlib.h>

#include "runtime/embed/exception.h"
#include "runtime/embed/exporter.h"
#include "runtime/fail.h"

static int no_memory(const struct extipy_ctx *c)
{
    c->py.PyErr_NoMemory();
    return EXTIPY_E_RAISED;
}

static void release_whole(void *whole)
{
    extipy_buffer_release(whole);
}

/* Memory that others gave to the context is theirs to release, not by way of the context, which may
 * even close meanwhile.  Consumes `whole`. */
static int lend_part(struct extipy_buffer **out, const struct extipy_ctx *c,
                     const struct extipy_view *view, struct extipy_buffer *whole)
{
    struct extipy_buffer *b = extipy__buffer_new(view);

    if (!b) {
        extipy_buffer_release(whole);
        return no_memory(c);
    }
    b->release = release_whole;
    b->user = whole;
    *out = b;
    return 0;
}

/* From here on the context is not finalised until the buffer is released.  The memory stays where
 * it is as long as the memoryview lives, so the view itself need not. */
static int lend_own(struct extipy_buffer **out, struct extipy_ctx *c,
                    const struct extipy_view *view, struct pyobj *memory, struct exti_error *err)
{
    struct extipy_object *origin;
    struct extipy_buffer *b;
    int open;

    b = extipy__buffer_new(view);
    origin = b ? extipy__object_new(c, memory) : NULL;
    if (!origin) {
        extipy_buffer_release(b);
        return no_memory(c);
    }
    pthread_mutex_lock(&c->lock);
    open = c->phase != EXTIPY_ENDED;
    c->buffers += open != 0;
    pthread_mutex_unlock(&c->lock);
    if (!open) {
        extipy_object_release(origin);
        extipy_buffer_release(b);
        return pyrt_fail(err, EXTIPY_E_CLOSED, "the context is closed");
    }
    b->origin = origin;
    *out = b;
    return 0;
}

static int lend_memory(struct extipy_buffer **out, struct extipy_ctx *c, struct pyobj *memory,
                       int writable, struct exti_error *err)
{
    const int flags = EXTIPY_VIEW_FORMAT | EXTIPY_VIEW_STRIDES;
    struct extipy_buffer *whole;
    struct extipy_view view;
    int rc =
        c->calls.PyObject_GetBuffer(memory, &view, writable ? flags | EXTIPY_VIEW_WRITABLE : flags);

    if (rc < 0)
        return EXTIPY_E_RAISED;
    whole = extipy__exporter_holding(c, &view);
    rc = whole ? lend_part(out, c, &view, whole) : lend_own(out, c, &view, memory, err);
    c->calls.PyBuffer_Release(&view);
    return rc;
}

static int lend(struct extipy_buffer **out, struct extipy_ctx *c, struct pyobj *object,
                int writable, struct exti_error *err)
{
    struct pyobj *memory = c->calls.PyMemoryView_FromObject(object);
    int rc = memory ? lend_memory(out, c, memory, writable, err) : EXTIPY_E_RAISED;

    c->py.Py_DecRef(memory);
    return rc;
}

int extipy_buffer_of(struct extipy_buffer **out, struct extipy_object *object, int writable,
                     struct extipy_exception **raised, struct exti_error *err)
{
    struct extipy_buffer *b = NULL;
    struct extipy_ctx *c;
    int rc;

    if (!out || !object)
        return pyrt_fail(err, EXTI_E_ARG, "out or the object is NULL");
    c = object->ctx;
    rc = extipy_enter(c, err);
    if (rc < 0)
        return rc;
    rc = lend(&b, c, object->object, writable, err);
    if (rc == EXTIPY_E_RAISED)
        rc = extipy__exception_take(c, raised, err);
    extipy_leave(c, NULL);
    if (rc == 0)
        *out = b;
    return rc;
}

int extipy_buffer_from(struct extipy_buffer **out, struct extipy_ctx *c, void *object,
                       struct exti_error *err)
{
    int rc;

    if (!out || !c || !object)
        return pyrt_fail(err, EXTI_E_ARG, "out, the context or the object is NULL");
    if (!c->calls.current_state())
        return pyrt_fail(err, EXTIPY_E_PLACE, "this thread does not have the context's GIL");
    rc = lend(out, c, object, 0, err);
    return rc == EXTIPY_E_RAISED ? extipy__exception_take(c, NULL, err) : rc;
}
