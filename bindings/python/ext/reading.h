/* Messages of another interpreter as objects of this one. */
#ifndef BINDINGS_PYTHON_EXT_READING_H
#define BINDINGS_PYTHON_EXT_READING_H

#include "bindings/python/ext/python.h"

#include "bindings/python/ext/message.h"

/* Makes the object that was added (values.h), None if it was nothing; NULL: with an exception. */
PyObject *pkg_read(const struct pkg_message *m);

/* What builtins has of that name; borrowed.  NULL without an exception: there is none. */
PyObject *pkg_builtin_named(PyObject *name);

#endif
