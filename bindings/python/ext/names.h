/* Names of attributes that other interpreters ask for. */
#ifndef BINDINGS_PYTHON_EXT_NAMES_H
#define BINDINGS_PYTHON_EXT_NAMES_H

#include "bindings/python/ext/python.h"

/* The name of these bytes, UTF-8 with surrogates; interned, as CPython remembers where types have
 * what names if these are.  `hash` is any number that the same name often comes with.  NULL: with
 * an exception. */
PyObject *pkg_names_find(const char *bytes, size_t n, size_t hash);

#endif
