/* Whether a copy is up to date.  The mutex is held; `first` as exti__store_node. */
#ifndef LOADER_STORE_STORE_FRESH_H
#define LOADER_STORE_STORE_FRESH_H

#include "loader/store/store.h"

/* Whether the entry, or NULL, is of a copy that is up to date and, if asked for, symbolic. */
bool exti__store_is_fresh(struct exti_store *s, const char *first, const struct exti_entry *e,
                          bool symbolic);

/* Whether new copies in this format leave their constructors to the library's own loader. */
bool exti__store_withholds(const struct exti_store *s, enum exti_file_format format);

/* Whether the copy's constructors are left to whom the store makes copies for. */
bool exti__store_is_of_kind(const struct exti_store *s, const struct exti_entry *e);

/* Whether the entry's needs are still found where they were when it was made.  A need is looked for
 * again when its file is gone or cannot be looked at, and when it had none and one is there now. */
bool exti__store_needs_stay(struct exti_store *s, const char *first, const struct exti_entry *e);

/* Likewise, and none that it shares is to be isolated in this process. */
bool exti__store_has_needs(struct exti_store *s, const char *first, const struct exti_entry *e);

#endif
