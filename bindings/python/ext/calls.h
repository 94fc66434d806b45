/* Calls of one interpreter by another, and queues between them. */
#ifndef BINDINGS_PYTHON_EXT_CALLS_H
#define BINDINGS_PYTHON_EXT_CALLS_H

#include "bindings/python/ext/state.h"

/* As of struct pkg_core. */
int pkg_calls_main(const struct pkg_message *message, struct pkg_message *answer,
                   struct exti_error *err);

/* Methods of the module. */
PyObject *pkg_calls_call(PyObject *module, PyObject *args);
PyObject *pkg_calls_put(PyObject *module, PyObject *args);
PyObject *pkg_calls_get(PyObject *module, PyObject *args);

#endif
