/* The needed libraries of one file, and what each is in its copy. */
#ifndef LOADER_STORE_STORE_NEEDS_H
#define LOADER_STORE_STORE_NEEDS_H

#include "loader/store/store.h"

/* One file that a copy is wanted of. */
struct exti_copy_request {
    const char *source; /* absolute, without symbolic links */
    const char *first;  /* the file that needs it, or `source`; see exti__store_node */
    bool root;          /* asked for, not only needed by another */
    bool symbolic;      /* binds to its own symbols first */
    bool full;          /* not lean, even if others are */
};

/* Sets the entry's needs and takes_api.  The mutex is held. */
int exti__store_needs(struct exti_store *s, const struct exti_copy_request *r, struct exti_entry *e,
                      struct exti_error *err);

#endif
