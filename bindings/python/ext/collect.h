/* Circles of objects through several interpreters. */
#ifndef BINDINGS_PYTHON_EXT_COLLECT_H
#define BINDINGS_PYTHON_EXT_COLLECT_H

#include "bindings/python/ext/core.h"

/* Stops all interpreters that have objects of others, finds the objects that nothing but circles
 * refers to, and ends their handles: what kept them is gone then, and each interpreter lets go of
 * them when it settles.  *ended: how many there were.  On a thread that has no GIL.  PKG_E_UNKNOWN:
 * an interpreter is being closed, and nothing was done. */
int pkg_collect(const struct pkg_core *core, size_t *ended, struct exti_error *err);

#endif
