#include "runtime/embed/exporter.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/embed/carrier.h"
#include "runtime/embed/exception.h"
#include "runtime/fail.h"

/* One object that exports a buffer.  It belongs to the object, and after the end of the context to
 * nobody. */
struct extipy_exporter {
    struct extipy_ctx *ctx;
    struct extipy_buffer *buffer;        /* a reference */
    struct extipy_exporter *next, *prev; /* in the context's list */
};

/* ---- the list ---- */

static struct extipy_exporter *new_exporter(struct extipy_ctx *c, struct extipy_buffer *b)
{
    struct extipy_exporter *e = malloc(sizeof *e);

    if (!e)
        return NULL;
    *e = (struct extipy_exporter){.ctx = c, .buffer = extipy_buffer_keep(b)};
    pthread_mutex_lock(&c->lock);
    e->next = c->exporters;
    if (e->next)
        e->next->prev = e;
    c->exporters = e;
    pthread_mutex_unlock(&c->lock);
    return e;
}

static void end_exporter(struct extipy_exporter *e)
{
    struct extipy_ctx *c = e->ctx;

    pthread_mutex_lock(&c->lock);
    if (e->next)
        e->next->prev = e->prev;
    if (e->prev)
        e->prev->next = e->next;
    else
        c->exporters = e->next;
    pthread_mutex_unlock(&c->lock);
    extipy_buffer_release(e->buffer);
    free(e);
}

/* ---- what is in others' memory ---- */

/* An object that was made of a buffer is mostly given on soon. */
#define LATELY 16

struct extent {
    uintptr_t first, end;
};

/* From the lowest to the highest item. */
static struct extent extent_of(const struct extipy_view *view)
{
    struct extent e = {(uintptr_t)view->buf, (uintptr_t)view->buf + (uintptr_t)view->itemsize};
    ptrdiff_t span;

    for (int i = 0; i < view->ndim; i++) {
        span = view->strides[i] * (view->shape[i] - 1);
        if (span < 0)
            e.first -= (uintptr_t)-span;
        else
            e.end += (uintptr_t)span;
    }
    return e;
}

struct extipy_buffer *extipy__exporter_holding(struct extipy_ctx *c, const struct extipy_view *view)
{
    const struct extent wanted = extent_of(view);
    struct extipy_buffer *found = NULL;
    const struct extipy_exporter *e;
    struct extent whole;

    if (!view->len)
        return NULL;
    pthread_mutex_lock(&c->lock);
    e = c->exporters;
    for (int i = 0; e && i < LATELY && !found; i++, e = e->next) {
        whole = extent_of(&e->buffer->view);
        if (e->buffer->view.len && whole.first <= wanted.first && wanted.end <= whole.end)
            found = extipy_buffer_keep(e->buffer);
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

void extipy__exporters_end(struct extipy_ctx *c)
{
    /* No code of the context runs any more, so its objects are only memory. */
    for (struct extipy_exporter *e = c->exporters, *next; e; e = next) {
        next = e->next;
        end_exporter(e);
    }
}

/* ---- functions of the type, called by Python ---- */

static int refuse_view(const struct extipy_ctx *c, struct extipy_view *view, const char *why)
{
    view->obj = NULL;
    c->calls.PyErr_SetString(*c->calls.PyExc_BufferError, why);
    return -1;
}

/* Whether the items lie as the flags ask for. */
static int lies_as_asked(const struct extipy_ctx *c, const struct extipy_view *view, int flags)
{
    const struct extipy_calls *calls = &c->calls;

    if ((flags & EXTIPY_VIEW_ANY) && !calls->PyBuffer_IsContiguous(view, 'A'))
        return 0;
    if ((flags & EXTIPY_VIEW_F) && !calls->PyBuffer_IsContiguous(view, 'F'))
        return 0;
    if ((flags & EXTIPY_VIEW_C) || (flags & EXTIPY_VIEW_STRIDES) != EXTIPY_VIEW_STRIDES)
        return calls->PyBuffer_IsContiguous(view, 'C');
    return 1;
}

/* bf_getbuffer */
static int get_view(struct pyobj *self, struct extipy_view *view, int flags)
{
    struct extipy_exporter *e = extipy__carried(self);
    const struct extipy_ctx *c;

    view->obj = NULL;
    if (!e)
        return -1;
    c = e->ctx;
    *view = e->buffer->view;
    if ((flags & EXTIPY_VIEW_WRITABLE) && view->readonly)
        return refuse_view(c, view, "the buffer is read-only");
    if (!lies_as_asked(c, view, flags))
        return refuse_view(c, view, "the buffer's items do not lie as asked for");
    if (!(flags & EXTIPY_VIEW_FORMAT))
        view->format = NULL;
    if (!(flags & EXTIPY_VIEW_ND))
        view->shape = NULL;
    if ((flags & EXTIPY_VIEW_STRIDES) != EXTIPY_VIEW_STRIDES)
        view->strides = NULL;
    c->py.Py_IncRef(self);
    view->obj = self;
    return 0;
}

/* tp_dealloc */
static void free_exporting(struct pyobj *self)
{
    struct extipy_exporter *e = extipy__carried(self);
    const struct extipy_ctx *c;
    struct pyobj *type;

    if (!e)
        return;
    c = e->ctx;
    type = c->calls.PyObject_Type(self);
    end_exporter(e);
    c->calls.PyObject_Free(self);
    c->py.Py_DecRef(type); /* PyObject_Type's reference, and the object's */
    c->py.Py_DecRef(type);
}

/* ---- the type ---- */

static struct pyobj *exporter_type(struct extipy_ctx *c)
{
    struct extipy_type_slot slots[] = {
        {EXTIPY_SLOT_GETBUFFER, NULL}, {EXTIPY_SLOT_DEALLOC, NULL}, {0, NULL}};
    struct extipy_type_spec spec = {.name = "extisolate.Buffer", .slots = slots};
    int (*get)(struct pyobj *, struct extipy_view *, int) = get_view;
    void (*end)(struct pyobj *) = free_exporting;

    /* ISO C has no conversion of pointers to functions into others. */
    memcpy(&slots[0].function, &get, sizeof get);
    memcpy(&slots[1].function, &end, sizeof end);
    if (!c->exporter_type)
        c->exporter_type = extipy__carrier_type(c, &spec);
    return c->exporter_type;
}

static struct pyobj *export_buffer(struct extipy_ctx *c, struct extipy_buffer *b)
{
    struct pyobj *type = exporter_type(c), *object = NULL;
    struct extipy_exporter *e;

    if (!type)
        return NULL;
    if (extipy__buffer_has_objects(b)) {
        c->calls.PyErr_SetString(*c->calls.PyExc_BufferError,
                                 "the buffer has objects of another interpreter in it");
        return NULL;
    }
    e = new_exporter(c, b);
    if (!e)
        return c->py.PyErr_NoMemory();
    object = extipy__carrier_new(c, type, e);
    if (!object)
        end_exporter(e);
    return object;
}

/* There it is a memoryview already. */
static int is_at_home(const struct extipy_ctx *c, const struct extipy_buffer *b)
{
    return b->origin && b->origin->ctx == c;
}

static struct pyobj *object_of(struct extipy_ctx *c, struct extipy_buffer *b)
{
    if (is_at_home(c, b)) {
        c->py.Py_IncRef(b->origin->object);
        return b->origin->object;
    }
    return export_buffer(c, b);
}

struct pyobj *extipy__exporter_view(struct extipy_ctx *c, struct extipy_buffer *b)
{
    struct pyobj *object = object_of(c, b), *view = NULL;

    if (is_at_home(c, b))
        return object;
    if (object)
        view = c->calls.PyMemoryView_FromObject(object);
    c->py.Py_DecRef(object);
    return view;
}

int extipy_buffer_object(void **out, struct extipy_ctx *c, struct extipy_buffer *b,
                         struct exti_error *err)
{
    struct pyobj *object;

    if (!out || !c || !b)
        return pyrt_fail(err, EXTI_E_ARG, "out, the context or the buffer is NULL");
    if (!c->calls.current_state())
        return pyrt_fail(err, EXTIPY_E_PLACE, "this thread does not have the context's GIL");
    object = object_of(c, b);
    if (!object)
        return extipy__exception_take(c, NULL, err);
    *out = object;
    return 0;
}
