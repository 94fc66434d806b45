/* Queues between interpreters, as methods of the module. */
#ifndef BINDINGS_PYTHON_EXT_QUEUE_CALLS_H
#define BINDINGS_PYTHON_EXT_QUEUE_CALLS_H

#include "bindings/python/ext/python.h"

/* (most): the number of a new one. */
PyObject *pkg_queue_calls_new(PyObject *module, PyObject *args);
/* (number): whether there was one. */
PyObject *pkg_queue_calls_free(PyObject *module, PyObject *args);
/* (number): how many items are in it, and may be; None: there is no such queue. */
PyObject *pkg_queue_calls_count(PyObject *module, PyObject *args);
/* (number, item, seconds): whether there was room in time. */
PyObject *pkg_queue_calls_put(PyObject *module, PyObject *args);
/* (number, seconds): an item; None: there was none in time. */
PyObject *pkg_queue_calls_get(PyObject *module, PyObject *args);

#endif
