/* Messages of another interpreter as objects of this one. */
#ifndef BINDINGS_PYTHON_EXT_READING_H
#define BINDINGS_PYTHON_EXT_READING_H

#include "bindings/python/ext/python.h"

#include "bindings/python/ext/message.h"

/* Makes the object that was added (values.h), None if it was nothing; NULL: with an exception. */
PyObject *pkg_read(const struct pkg_message *m);

#define PKG_FEW 6
/* Makes the objects of a tuple that was added, if they are so few; none if it was nothing.  Returns
 * 1; 0: they are more, or it is no tuple; -1: with an exception.  `*n` of them are made, and the
 * caller's. */
int pkg_read_few(const struct pkg_message *m, PyObject **items, size_t *n);

/* What builtins has of that name; borrowed.  NULL without an exception: there is none. */
PyObject *pkg_builtin_named(PyObject *name);

#endif
