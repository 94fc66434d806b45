/* Whether a file of the context directory is the copy that was written there.
 *
 * Who can change a file tells whom to trust; the hash only detects that it was changed: a copied or
 * restored folder, a failing disk.  So the identity is looked at each time, at the price of one
 * stat(2), and the bytes are read only when that is not the recorded one.  Any thread. */
#ifndef LOADER_STORE_COPY_IDENTITY_H
#define LOADER_STORE_COPY_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/store/manifest.h"

/* The SHA-256 of `n` bytes without the parts that are left out, as hex digits: nobody loads what a
 * copy has there. */
int exti__copy_hash(const uint8_t *p, size_t n, const struct exti_unread *left_out,
                    char out[EXTI_HASH_MAX], struct exti_error *err);

/* The hash of the file `path`, and which version of it that is. */
int exti__copy_hash_of(const char *path, const struct exti_unread *left_out,
                       struct exti_file_id *id, char out[EXTI_HASH_MAX], struct exti_error *err);

/* The hash of the entry's copy `path`.  False unless it was the file `id` before and after it was
 * read; as nothing can be said of it then, why does not matter. */
bool exti__copy_hash_file(const char *path, const struct exti_entry *e,
                          const struct exti_file_id *id, char out[EXTI_HASH_MAX]);

/* For those who load the copy: whether `path` is the file that `e` records, or one that has its
 * hash.  Then *now is its identity.  False too if it is a link, or, unless `any_owner`, if others
 * than this user and root can change it. */
bool exti__copy_is_recorded(const char *path, const struct exti_entry *e, bool any_owner,
                            struct exti_file_id *now);

/* For those who only report: EXTI_COPY_FRESH, _MISSING or _UNKNOWN.  The time of its last change is
 * enough where there is no hash. */
enum exti_copy_state exti__copy_reported_state(const char *path, const struct exti_entry *e);

/* Whether two looks at a copy saw the same file unchanged. */
bool exti__copy_same_id(const struct exti_file_id *a, const struct exti_file_id *b);

#endif
