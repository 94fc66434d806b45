/* Memory of this interpreter for others, and that of others for this one. */
#ifndef BINDINGS_PYTHON_EXT_MEMORY_H
#define BINDINGS_PYTHON_EXT_MEMORY_H

#include "bindings/python/ext/state.h"

/* Return NULL with an exception. */
struct extipy_buffer *pkg_memory_export(PyObject *exporter);
PyObject *pkg_memory_view(struct extipy_buffer *buffer); /* a memoryview */

/* Methods of contexts' copies of the module, by which a context hands objects to itself through the
 * library, whose buffers know how long a context has to stay. */
PyObject *pkg_memory_take(PyObject *module, PyObject *key);
PyObject *pkg_memory_keep(PyObject *module, PyObject *pair);

/* Makes the type of the main interpreter's views. */
int pkg_memory_init(void);

#endif
