/* The summary of the libraries that a context's files need. */
#ifndef LOADER_STORE_STORE_LIBRARIES_H
#define LOADER_STORE_STORE_LIBRARIES_H

#include "loader/store/store.h"

/* Tells `each` what became of every library that the entries need, and `why` if asked for, until
 * that returns non-zero; see exti_ctx_libraries.  Takes the mutex. */
int exti__store_libraries(struct exti_store *s, bool why,
                          int (*each)(void *user, const struct exti_library_info *info), void *user,
                          struct exti_error *err);

#endif
