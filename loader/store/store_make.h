/* Making one copy.  It is planned with the mutex held; any thread can write a plan. */
#ifndef LOADER_STORE_STORE_MAKE_H
#define LOADER_STORE_STORE_MAKE_H

#include "loader/store/edits.h"
#include "loader/store/store_needs.h"

struct exti_making {
    struct exti_entry e;
    struct exti_edits edits; /* points into itself and into the other two */
    struct exti_image *im;
};

/* All of a copy but its bytes.  `out` is zero-filled.  If the file imports from python3.dll,
 * that one's copy is made first. */
int exti__store_plan(struct exti_store *s, const struct exti_copy_request *r,
                     struct exti_making *out, struct exti_error *err);
void exti__making_clear(struct exti_making *m); /* all but its entry */

/* Plans, writes and records a copy. */
int exti__store_make(struct exti_store *s, const struct exti_copy_request *r,
                     struct exti_error *err);

#endif
