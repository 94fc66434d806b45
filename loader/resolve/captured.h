/* Libraries of which the program has its own: one that is linked with OpenSSL statically and
 * exports it, say.  The system's loader binds references to such a library to the program instead.
 * Any thread. */
#ifndef LOADER_RESOLVE_CAPTURED_H
#define LOADER_RESOLVE_CAPTURED_H

#include "base/format.h"

/* Whether the running program defines a symbol that the file exports.  Weak symbols do not count:
 * C++ uses them for what files that are loaded together share.  Nor do functions that allocate: a
 * program that defines these means the whole process.  Asks nothing of the system's loader. */
bool exti__is_captured(const struct exti_image *im);

#endif
