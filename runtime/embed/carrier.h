/* Objects of Python that carry a pointer of the library, for functions that Python calls; the
 * thread has the GIL. */
#ifndef RUNTIME_EMBED_CARRIER_H
#define RUNTIME_EMBED_CARRIER_H

#include "runtime/embed/context.h"

/* Makes a type of such objects, of which `spec` has the name and the slots.  Returns a new
 * reference, or NULL with an exception set. */
struct pyobj *extipy__carrier_type(const struct extipy_ctx *c, struct extipy_type_spec *spec);
/* Makes an object of it.  Returns a new reference, or NULL with an exception set. */
struct pyobj *extipy__carrier_new(const struct extipy_ctx *c, struct pyobj *type, void *carried);
/* Returns the pointer.  NULL: the object was made by a call of the type, possible in 3.9. */
void *extipy__carried(const struct pyobj *carrier);

#endif
