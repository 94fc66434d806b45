/* What to do once glibc's block for static TLS is full. */
#ifndef LOADER_LOAD_STATIC_TLS_H
#define LOADER_LOAD_STATIC_TLS_H

#include <extisolate.h>

#if !defined(__APPLE__) && !defined(_WIN32)

/* `err` tells why opening `path` failed.  If the block was full, changes its message to one that
 * names the setting which would have helped. */
void exti__static_tls_advise(const char *path, struct exti_error *err);

#else

static inline void exti__static_tls_advise(const char *path, struct exti_error *err)
{
    (void)path, (void)err;
}

#endif
#endif
