/* Python source of the library's own. */
#ifndef RUNTIME_EMBED_SOURCE_H
#define RUNTIME_EMBED_SOURCE_H

#include "runtime/pyapi.h"

/* Runs it in a namespace of its own, a dict.  Returns a new reference to that, or NULL with an
 * exception set.  The thread has the GIL. */
struct pyobj *extipy__source_run(const struct pyrt_api *py, const char *source);

#endif
