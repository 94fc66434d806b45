#include "bindings/python/ext/memory.h"

#include <stdio.h>

#include "bindings/python/ext/release.h"

/* ---- the main interpreter's memory, for contexts ---- */

static struct extipy_buffer *export_main(PyObject *exporter)
{
    static const ptrdiff_t no_dimensions; /* NULL would mean one of them */
    struct pkg_export *e = pkg_release_new(exporter);
    struct extipy_buffer *buffer;
    struct extipy_buffer_info info = {.size = sizeof info};
    struct exti_error err;
    int rc;

    if (!e)
        return NULL;
    info.data = e->view.buf;
    info.length = (size_t)e->view.len;
    info.item_size = (size_t)e->view.itemsize;
    info.readonly = e->view.readonly;
    info.dimensions = e->view.ndim;
    info.format = e->view.format;
    info.shape = e->view.shape ? (const ptrdiff_t *)e->view.shape : &no_dimensions;
    info.strides = (const ptrdiff_t *)e->view.strides;
    if (e->view.suboffsets) {
        rc = EXTI_E_ARG;
        snprintf(err.message, sizeof err.message, "memory with suboffsets cannot be shared");
    } else {
        rc = extipy_buffer_new(&buffer, &info, pkg_release_later, e, &err);
    }
    if (rc == 0)
        return buffer;
    pkg_release_now(e);
    pkg_state_raise(rc, err.message);
    return NULL;
}

/* ---- contexts' memory, for the main interpreter ---- */

/* An object that exports a buffer of another interpreter. */
struct shared_memory {
    PyObject_HEAD struct extipy_buffer *buffer;
};

static PyTypeObject *shared_type;

static int refuse_flags(const Py_buffer *view, int flags)
{
    const char *why = NULL;

    if ((flags & PyBUF_WRITABLE) && view->readonly)
        why = "the memory is read-only";
    else if (((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS ||
              (flags & PyBUF_STRIDES) != PyBUF_STRIDES) &&
             !PyBuffer_IsContiguous(view, 'C'))
        why = "the memory is not contiguous in C's order";
    else if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS &&
             !PyBuffer_IsContiguous(view, 'F'))
        why = "the memory is not contiguous in Fortran's order";
    else if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS &&
             !PyBuffer_IsContiguous(view, 'A'))
        why = "the memory is not contiguous";
    if (why)
        PyErr_SetString(PyExc_BufferError, why);
    return why != NULL;
}

static int get_shared(PyObject *self, Py_buffer *view, int flags)
{
    struct extipy_buffer_info info = {.size = sizeof info};

    extipy_buffer_info(((struct shared_memory *)(void *)self)->buffer, &info);
    *view = (Py_buffer){.buf = info.data,
                        .len = (Py_ssize_t)info.length,
                        .itemsize = (Py_ssize_t)info.item_size,
                        .readonly = info.readonly,
                        .ndim = info.dimensions,
                        .format = (char *)info.format,
                        .shape = (Py_ssize_t *)info.shape,
                        .strides = (Py_ssize_t *)info.strides};
    if (refuse_flags(view, flags)) {
        view->obj = NULL;
        return -1;
    }
    if (!(flags & PyBUF_FORMAT))
        view->format = NULL;
    if (!(flags & PyBUF_ND))
        view->shape = NULL;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES)
        view->strides = NULL;
    Py_INCREF(self);
    view->obj = self;
    return 0;
}

static void free_shared(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    int *begun;

    /* It may be memory of this interpreter, which has been to others. */
    begun = pkg_release_begin();
    extipy_buffer_release(((struct shared_memory *)(void *)self)->buffer);
    pkg_release_end(begun);
    release(self);
    Py_DECREF(type);
}

int pkg_memory_init(void)
{
    PyType_Slot slots[] = {{Py_bf_getbuffer, (void *)get_shared},
                           {Py_tp_dealloc, (void *)free_shared},
                           {Py_tp_new, NULL},
                           {0, NULL}};
    PyType_Spec spec = {.name = "extisolate.SharedMemory",
                        .basicsize = sizeof(struct shared_memory),
                        .flags = Py_TPFLAGS_DEFAULT,
                        .slots = slots};

    if (!shared_type)
        shared_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return shared_type ? 0 : -1;
}

static PyObject *import_to_main(struct extipy_buffer *buffer)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(shared_type, Py_tp_alloc);
    PyObject *object = allocate(shared_type, 0);

    if (object)
        ((struct shared_memory *)(void *)object)->buffer = extipy_buffer_keep(buffer);
    return object;
}

/* ---- a context's own objects, by way of the library ---- */

static struct extipy_buffer *export_context(PyObject *exporter)
{
    struct extipy_buffer *buffer = NULL;
    struct exti_error err;
    int rc = extipy_buffer_from(&buffer, pkg_state.ctx, exporter, &err);

    if (rc < 0)
        pkg_state_raise(rc, err.message);
    return buffer;
}

static PyObject *import_to_context(struct extipy_buffer *buffer)
{
    struct exti_error err;
    void *object;
    int rc = extipy_buffer_object(&object, pkg_state.ctx, buffer, &err);

    return rc < 0 ? pkg_state_raise(rc, err.message) : object;
}

/* ---- both ---- */

static PyObject *readonly_view(PyObject *exporter)
{
    PyObject *view = PyMemoryView_FromObject(exporter), *readonly = NULL;

    if (view)
        readonly = PyObject_CallMethod(view, "toreadonly", NULL);
    Py_XDECREF(view);
    return readonly;
}

/* PEP 3118: "O" is one, and names of fields are between colons. */
int pkg_memory_has_objects(const char *format)
{
    int in_name = 0;

    for (const char *at = format; at && *at; at++) {
        in_name ^= *at == ':';
        if (*at == 'O' && !in_name)
            return 1;
    }
    return 0;
}

/* Consumes the buffer. */
static struct extipy_buffer *without_objects(struct extipy_buffer *buffer)
{
    struct extipy_buffer_info info = {.size = sizeof info};

    if (buffer)
        extipy_buffer_info(buffer, &info);
    if (!pkg_memory_has_objects(info.format))
        return buffer;
    extipy_buffer_release(buffer);
    PyErr_SetString(PyExc_BufferError,
                    "memory in which objects are cannot be given to another interpreter");
    return NULL;
}

struct extipy_buffer *pkg_memory_export(PyObject *exporter, int readonly)
{
    struct extipy_buffer *buffer = NULL;

    if (readonly)
        exporter = readonly_view(exporter);
    if (exporter)
        buffer = pkg_state.ctx ? export_context(exporter) : export_main(exporter);
    if (readonly)
        Py_XDECREF(exporter);
    return without_objects(buffer);
}

PyObject *pkg_memory_import(struct extipy_buffer *buffer)
{
    return pkg_state.ctx ? import_to_context(buffer) : import_to_main(buffer);
}
