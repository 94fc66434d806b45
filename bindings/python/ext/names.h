/* Names of attributes that other interpreters ask for. */
#ifndef BINDINGS_PYTHON_EXT_NAMES_H
#define BINDINGS_PYTHON_EXT_NAMES_H

#include "bindings/python/ext/python.h"

#include "bindings/python/ext/message.h"

/* The only object of the message, a str; interned, as CPython remembers where types have what names
 * if these are.  NULL: with an exception. */
PyObject *pkg_names_read(const struct pkg_message *m);

#endif
