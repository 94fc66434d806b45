/* How copies and their sources look on disk now. */
#ifndef LOADER_STORE_STORE_STATE_H
#define LOADER_STORE_STORE_STATE_H

#include "base/os/fs_id.h"
#include "loader/store/store.h"

/* How the entry's copy, whose path is `copy`, and source look now, to those who only report it. */
enum exti_copy_state exti__entry_state(const char *copy, const struct exti_manifest *m,
                                       const struct exti_entry *e);

/* Likewise to those who will load the copy: see exti__copy_is_recorded.  A copy that is another
 * file with the recorded hash, as in a folder that was copied, is fresh, and its identity is
 * recorded; so is the hash of a copy that has none, where it can be saved.  The mutex is held. */
enum exti_copy_state exti__store_copy_state(struct exti_store *s, const struct exti_entry *e);

/* Whether a power loss may have torn the copy.  Within the boot that wrote it there was none:
 * every reader sees the page cache.  True too of copies that an earlier version has recorded. */
bool exti__store_may_be_torn(const struct exti_store *s, const struct exti_entry *e);

#endif
