/* When glibc's block for static TLS is full. */
#ifndef LOADER_PROCESS_STATIC_TLS_H
#define LOADER_PROCESS_STATIC_TLS_H

#include <extisolate.h>

/* If `text`, dlerror's, says that the block is full, fills *err, as for a failed opening of `path`, with
 * what to do about it, and returns its code; else 0. */
int exti__static_tls_full(const char *path, const char *text, struct exti_error *err);

#endif
