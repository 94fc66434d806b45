/* Objects of this interpreter as messages for another one. */
#ifndef BINDINGS_PYTHON_EXT_VALUES_H
#define BINDINGS_PYTHON_EXT_VALUES_H

#include "bindings/python/ext/python.h"

#include "bindings/python/ext/message.h"

/* How memory is given: as the package's own numbers say. */
enum pkg_policy {
    PKG_COPY = 1,
    PKG_READONLY = 2,
    /* Whatever is not given by value is given as a proxy, and so always is something that can be
     * added: all but what exactly is of None, bool, int, float, complex, str, bytes, tuple, slice,
     * Ellipsis, NotImplemented, a class of builtins, or some of its functions; and but for what the
     * package says is a value. */
    PKG_LINKED = 4,
    /* With PKG_LINKED: what an operation is given.  By value are lists, dicts and sets, memory, and
     * whatever the package says is data. */
    PKG_GIVEN = 8
};

/* Whether pkg_values_add takes the object, and there is no exception. */
int pkg_values_plain(PyObject *object, int policy);

/* Adds an object that with all in it is of exactly None, bool, int, float, str, bytes or tuple, a
 * memoryview, an array or a proxy; memory not where it is copied, nor if it comes up twice, or
 * often.  Returns 1; 0: it is something else; -1: with an exception.  Unless it returns 1 the
 * message is not complete. */
int pkg_values_add(struct pkg_message *m, PyObject *object, int policy);
/* The same for a tuple of these objects; nothing is added for an empty one. */
int pkg_values_add_all(struct pkg_message *m, PyObject *const *objects, Py_ssize_t n, int policy);

/* Adds a tuple that the package has made of such objects, and of any memoryviews.  Returns 0, or -1
 * with an exception; the message is empty then. */
int pkg_values_add_own(struct pkg_message *m, PyObject *tuple, int policy);

#endif
