/* dlopen for a copy.  POSIX systems. */
#ifndef LOADER_INTERPOSE_COPY_DLOPEN_H
#define LOADER_INTERPOSE_COPY_DLOPEN_H

#include "loader/track/module.h"

/* dlopen(file, mode), called by the module `caller`, whose context has its API library open.
 * Returns a handle; or NULL, with an error in *err or, if err->code is 0, in dlerror. */
void *exti__copy_dlopen(const struct exti_module *caller, const char *file, int mode,
                        struct exti_error *err);

#endif
