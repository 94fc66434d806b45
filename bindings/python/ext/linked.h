/* What stands for objects that are linked: proxies of those of other interpreters, and what stands
 * for one's own that are shared.  What proxies do is in proxy.c. */
#ifndef BINDINGS_PYTHON_EXT_LINKED_H
#define BINDINGS_PYTHON_EXT_LINKED_H

#include "bindings/python/ext/python.h"

#include "bindings/python/ext/object.h"

/* An instance of a class in Python that is made for the type of the object, or for one's own object
 * of the class that stands for it. */
struct proxy {
    PyObject_HEAD struct pkg_object *object; /* a reference; NULL: it was let go of */
    PyObject *weak;
    vectorcallfunc invoke;
    uint64_t home; /* the number of the object's interpreter */
    int counted;   /* among the handle's `proxies` */
    int forked;    /* let go of as this process is a child of the one that the object is in */
    struct proxy *next, *prev;
};

/* Tells of the types, whose references are the module's: that of all, of proxies, and of what
 * stands for one's own; and of what calls of proxies do.  -1: with an exception. */
int pkg_linked_begin(PyTypeObject *linked, PyTypeObject *proxy, PyTypeObject *shared,
                     vectorcallfunc invoke);
/* tp_dealloc and tp_traverse of all. */
void pkg_linked_dealloc(PyObject *self);
int pkg_linked_traverse(PyObject *self, visitproc visit, void *arg);

int pkg_linked_is(PyObject *object);
/* What such an object is of; borrowed.  NULL: with an exception, as it has ended. */
struct pkg_object *pkg_linked_handle(PyObject *object);

/* This interpreter's own object of the handle, or its proxy; NULL: with an exception. */
PyObject *pkg_linked_object(struct pkg_object *handle);

/* Method of the module: share(object, copies). */
PyObject *pkg_linked_share(PyObject *module, PyObject *args);

/* All let go of their objects, with which nothing can be done any more.  In a child the handles are
 * the parent's, and stay as they are. */
void pkg_linked_end_all(int forked);

#endif
