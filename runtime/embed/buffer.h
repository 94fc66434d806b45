/* Memory that is shared: see <extisolate/python.h>. */
#ifndef RUNTIME_EMBED_BUFFER_H
#define RUNTIME_EMBED_BUFFER_H

#include "runtime/embed/object.h"

#define EXTIPY_DIMENSIONS 64 /* PyBUF_MAX_NDIM */

struct extipy_buffer {
    atomic_size_t refs;
    struct extipy_view view; /* with pointers to what is below; it is not one that Python gave */
    struct extipy_object *origin; /* a memoryview that keeps the memory; NULL: the program's */
    void (*release)(void *user);
    void *user;
    ptrdiff_t layout[]; /* the shape, the strides, and the format's text; no more than there is, as
                         * allocators have small blocks at hand */
};

/* Makes a buffer with one reference, of which nobody knows to whom the memory belongs.  NULL: no
 * memory. */
struct extipy_buffer *extipy__buffer_new(const struct extipy_view *view);

/* Whether items are references to Python's objects, which are an interpreter's own. */
int extipy__buffer_has_objects(const struct extipy_buffer *b);

#endif
