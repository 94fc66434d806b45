/* A file that is not there, and one of which nobody knows whether it is there, are two things.  A
 * loader that meets the first looks elsewhere.  The second says nothing about the file: with
 * another answer a library would be shared that the context ought to isolate, so it ends the
 * look-up with an error.
 *
 * EACCES is between them. ld.so and dyld go on to the next folder, and so does the look-up; but
 * when no folder has the library, the one that could not be read may have it, for another user or
 * another time, and that is an error, too. */
#ifndef LOADER_RESOLVE_ABSENT_H
#define LOADER_RESOLVE_ABSENT_H

#include <stdbool.h>

#include "base/error.h"

/* What loaders take for a file that is not there. */
static inline bool exti__is_absent(int os_error)
{
    return os_error == ENOENT || os_error == ENOTDIR || os_error == ELOOP ||
           os_error == ENAMETOOLONG;
}

/* Whether the error says only that the system did not let us look.  A directory in the place of a
 * library is an answer, and so is a file that cannot be understood. */
static inline bool exti__is_unseen(int rc, const struct exti_error *e)
{
    return rc == EXTI_E_NOMEM || (rc == EXTI_E_IO && e->os_error && e->os_error != EISDIR &&
                                  !exti__is_absent(e->os_error));
}

static inline bool exti__is_forbidden(int rc, const struct exti_error *e)
{
    return rc == EXTI_E_IO && e->os_error == EACCES;
}

#endif
