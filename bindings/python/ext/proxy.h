/* What is done with objects of other interpreters by their proxies. */
#ifndef BINDINGS_PYTHON_EXT_PROXY_H
#define BINDINGS_PYTHON_EXT_PROXY_H

#include "bindings/python/ext/python.h"

/* Adds the types of linked.h to the module. */
int pkg_proxy_add(PyObject *module);

/* Methods of the module: special(proxy, name, *args, **kwargs), copy(proxy), home(proxy). */
PyObject *pkg_proxy_special(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *pkg_proxy_copy(PyObject *module, PyObject *proxy);
PyObject *pkg_proxy_home(PyObject *module, PyObject *proxy);
/* And callable_class(bases): a new class of those, one of which is that of proxies to be called.
 * Before 3.12 calls make tuples where a class was made in Python. */
PyObject *pkg_proxy_class(PyObject *module, PyObject *bases);

#endif
