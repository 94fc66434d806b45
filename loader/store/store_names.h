/* The file name of each copy.  The mutex is held. */
#ifndef LOADER_STORE_STORE_NAMES_H
#define LOADER_STORE_STORE_NAMES_H

#include "loader/store/store.h"

/* The file name that the copy of `source` gets unless the hook has another.  `name` has room for
 * EXTI_FILE_NAME_MAX+1 bytes. */
void exti__store_propose_name(const struct exti_store *s, const char *source, char *name);

/* Lets the hook, if any, replace the proposed file name in `name`, and checks the answer:
 * EXTI_E_HOOK for what is no plain file name, EXTI_E_ARG for another copy's name. */
int exti__store_check_name(const struct exti_store *s, const char *source, char *name,
                           struct exti_error *err);

#endif
