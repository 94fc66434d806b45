/* Memory of this interpreter for others, and that of others for this one. */
#ifndef BINDINGS_PYTHON_EXT_MEMORY_H
#define BINDINGS_PYTHON_EXT_MEMORY_H

#include "bindings/python/ext/state.h"

/* Return NULL with an exception. */
struct extipy_buffer *pkg_memory_export(PyObject *exporter, int readonly);
PyObject *pkg_memory_import(struct extipy_buffer *buffer); /* it has the buffer protocol */

/* Whether items of that format are references to Python's objects, which are an interpreter's own:
 * then pkg_memory_export raises BufferError. */
int pkg_memory_has_objects(const char *format);

/* Makes the type of the main interpreter's views. */
int pkg_memory_init(void);

#endif
