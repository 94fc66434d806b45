/* Objects of this interpreter as messages for another one, and back. */
#ifndef BINDINGS_PYTHON_EXT_VALUES_H
#define BINDINGS_PYTHON_EXT_VALUES_H

#include "bindings/python/ext/python.h"

#include "bindings/python/ext/message.h"

/* How memory is given: as the package's own numbers say. */
enum pkg_policy { PKG_COPY = 1, PKG_READONLY = 2 };

/* Whether pkg_values_add takes the object, and there is no exception. */
int pkg_values_plain(PyObject *object, int policy);

/* Adds an object that with all in it is of exactly None, bool, int, float, str, bytes or tuple, a
 * memoryview or an array; memory not where it is copied, nor if it comes up twice, or often.
 * Returns 1; 0: it is something else; -1: with an exception.  Unless it returns 1 the message is
 * not complete. */
int pkg_values_add(struct pkg_message *m, PyObject *object, int policy);
/* The same for a tuple of these objects; nothing is added for an empty one. */
int pkg_values_add_all(struct pkg_message *m, PyObject *const *objects, Py_ssize_t n, int policy);

/* Adds a tuple that the package has made of such objects, and of any memoryviews.  Returns 0, or -1
 * with an exception; the message is empty then. */
int pkg_values_add_own(struct pkg_message *m, PyObject *tuple, int policy);

/* Makes the object that was added, None if it was nothing; NULL: with an exception. */
PyObject *pkg_values_read(const struct pkg_message *m);

#endif
