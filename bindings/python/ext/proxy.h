/* Proxies of objects of other interpreters, and what stands for one's own that are shared. */
#ifndef BINDINGS_PYTHON_EXT_PROXY_H
#define BINDINGS_PYTHON_EXT_PROXY_H

#include "bindings/python/ext/python.h"

#include "bindings/python/ext/object.h"

/* Adds the types to the module. */
int pkg_proxy_add(PyObject *module);

/* Whether the object is a proxy, or stands for one's own object. */
int pkg_proxy_is(PyObject *object);
/* What such an object is of; borrowed.  NULL: with an exception, as it has ended. */
struct pkg_object *pkg_proxy_handle(PyObject *object);

/* This interpreter's own object of the handle, or its proxy; NULL: with an exception. */
PyObject *pkg_proxy_of(struct pkg_object *handle);

/* Methods of the module. */
PyObject *pkg_proxy_share(PyObject *module, PyObject *args);
PyObject *pkg_proxy_special(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *pkg_proxy_copy(PyObject *module, PyObject *proxy);
PyObject *pkg_proxy_home(PyObject *module, PyObject *proxy);

/* All proxies let go of their objects, with which nothing can be done any more.  In a child the
 * handles are the parent's, and stay as they are. */
void pkg_proxy_end_all(int forked);

#endif
