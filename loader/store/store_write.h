/* Writing one copy. */
#ifndef LOADER_STORE_STORE_WRITE_H
#define LOADER_STORE_STORE_WRITE_H

#include "loader/store/edits.h"
#include "loader/store/store_needs.h"

/* Writes the copy unless the same bytes are there: a copy that another process has loaded must
 * keep its inode.  Completes the entry.  Fails with os_error ESTALE when the source is no longer
 * what the entry says, as the edits were planned for that.  Any thread; reads none of what the
 * mutex guards, unless `r` is given: then the copy may become a pattern. */
int exti__store_write(const struct exti_store *s, const struct exti_image *im,
                      const struct exti_edits *edits, const struct exti_copy_request *r,
                      struct exti_entry *e, struct exti_error *err);

#endif
