/* What loaders take for a file that is not there. */
#ifndef LOADER_RESOLVE_ABSENT_H
#define LOADER_RESOLVE_ABSENT_H

#include <errno.h>
#include <stdbool.h>

static inline bool exti__is_absent(int os_error)
{
    return os_error == ENOENT || os_error == ENOTDIR || os_error == EACCES || os_error == ELOOP ||
           os_error == ENAMETOOLONG;
}

#endif
