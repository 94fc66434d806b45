#include "bindings/python/ext/memory.h"

#include <stdio.h>

#include "bindings/python/ext/release.h"

/* ---- the main interpreter's memory, for contexts ---- */

static struct extipy_buffer *export_main(PyObject *exporter)
{
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
    info.shape = (const ptrdiff_t *)e->view.shape;
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

    extipy_buffer_release(((struct shared_memory *)(void *)self)->buffer);
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

static PyObject *view_in_main(struct extipy_buffer *buffer)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(shared_type, Py_tp_alloc);
    PyObject *object = allocate(shared_type, 0), *view;

    if (!object)
        return NULL;
    ((struct shared_memory *)(void *)object)->buffer = extipy_buffer_keep(buffer);
    view = PyMemoryView_FromObject(object);
    Py_DECREF(object);
    return view;
}

/* ---- a context's own objects, by way of the library ---- */

static PyObject *stash; /* by number */
static unsigned long long last_key;

static PyObject *stash_key(void)
{
    if (!stash)
        stash = PyDict_New();
    return stash ? PyLong_FromUnsignedLongLong(++last_key) : NULL;
}

PyObject *pkg_memory_take(PyObject *module, PyObject *key)
{
    PyObject *object = PyDict_GetItemWithError(stash, key);

    (void)module;
    Py_XINCREF(object);
    if (object && PyDict_DelItem(stash, key) < 0)
        Py_CLEAR(object);
    return object;
}

PyObject *pkg_memory_keep(PyObject *module, PyObject *pair)
{
    PyObject *key = PyTuple_GetItem(pair, 0), *object = PyTuple_GetItem(pair, 1);

    (void)module;
    if (!key || !object || PyDict_SetItem(stash, key, object) < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* Calls this context from within, on the thread that is in it. */
static int call_self(const char *function, struct extipy_values *values, size_t argument,
                     struct extipy_values **result)
{
    struct extipy_call call = {
        .size = sizeof call, .function = function, .values = values, .stay = result != NULL};
    struct exti_error err;
    int rc;

    call.args = extipy_container(values, EXTIPY_TUPLE, &argument, 1);
    rc = extipy_call(pkg_state.ctx, &call, result, NULL, &err);
    if (rc < 0)
        pkg_state_raise(rc, err.message);
    return rc;
}

static struct extipy_buffer *export_stashed(uint64_t key)
{
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *values, *result;
    struct extipy_buffer *buffer = NULL;
    struct exti_error err;
    int rc = extipy_values_new(&values, &err);

    if (rc < 0) {
        pkg_state_raise(rc, err.message);
        return NULL;
    }
    rc = call_self("extisolate._extisolate:_take", values, extipy_int(values, (int64_t)key),
                   &result);
    extipy_values_free(values);
    if (rc < 0)
        return NULL;
    extipy_value(result, 1, &value);
    rc = extipy_buffer_of(&buffer, value.object, 0, NULL, &err);
    extipy_values_free(result);
    if (rc < 0)
        pkg_state_raise(rc, err.message);
    return buffer;
}

static struct extipy_buffer *export_context(PyObject *exporter)
{
    PyObject *key = stash_key();
    struct extipy_buffer *buffer = NULL;

    if (key && PyDict_SetItem(stash, key, exporter) == 0) {
        buffer = export_stashed(PyLong_AsUnsignedLongLong(key));
        if (PyDict_GetItemWithError(stash, key)) /* after an error */
            PyDict_DelItem(stash, key);
    }
    Py_XDECREF(key);
    return buffer;
}

static PyObject *view_in_context(struct extipy_buffer *buffer)
{
    PyObject *key = stash_key(), *view = NULL;
    struct extipy_values *values = NULL;
    size_t pair[2], argument;

    if (key && extipy_values_new(&values, NULL) < 0)
        PyErr_NoMemory();
    if (values) {
        pair[0] = extipy_int(values, (int64_t)PyLong_AsUnsignedLongLong(key));
        pair[1] = extipy_buffer(values, buffer);
        argument = extipy_container(values, EXTIPY_TUPLE, pair, 2);
        if (call_self("extisolate._extisolate:_keep", values, argument, NULL) == 0)
            view = pkg_memory_take(NULL, key);
    }
    extipy_values_free(values);
    Py_XDECREF(key);
    return view;
}

/* ---- both ---- */

struct extipy_buffer *pkg_memory_export(PyObject *exporter)
{
    return pkg_state.ctx ? export_context(exporter) : export_main(exporter);
}

PyObject *pkg_memory_view(struct extipy_buffer *buffer)
{
    return pkg_state.ctx ? view_in_context(buffer) : view_in_main(buffer);
}
