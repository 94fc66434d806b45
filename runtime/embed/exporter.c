#include "runtime/embed/exporter.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/embed/carrier.h"

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
    struct extipy_exporter *e = calloc(1, sizeof *e);

    if (!e)
        return NULL;
    e->ctx = c;
    e->buffer = extipy_buffer_keep(b);
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
    e = new_exporter(c, b);
    if (!e)
        return c->py.PyErr_NoMemory();
    object = extipy__carrier_new(c, type, e);
    if (!object)
        end_exporter(e);
    return object;
}

struct pyobj *extipy__exporter_view(struct extipy_ctx *c, struct extipy_buffer *b)
{
    struct pyobj *object, *view = NULL;

    /* At home it is a memoryview already. */
    if (b->origin && b->origin->ctx == c) {
        c->py.Py_IncRef(b->origin->object);
        return b->origin->object;
    }
    object = export_buffer(c, b);
    if (object)
        view = c->calls.PyMemoryView_FromObject(object);
    c->py.Py_DecRef(object);
    return view;
}
