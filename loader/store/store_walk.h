/* Walks over a file and its dependencies.  No recursion: a manifest may be of any depth. */
#ifndef LOADER_STORE_STORE_WALK_H
#define LOADER_STORE_STORE_WALK_H

#include <stdbool.h>

#include "loader/store/manifest.h"

/* Files still to be looked at. */
struct exti_steps {
    struct exti_step {
        const char *source, *user; /* who needs it; NULL: who asked */
    } *steps;                      /* owned */
    size_t count, cap;
};

/* False when memory is out.  The strings are borrowed: those of an entry stay where they are
 * until it is made anew. */
bool exti__steps_push(struct exti_steps *p, const char *source, const char *user);
bool exti__steps_push_needs(struct exti_steps *p, const struct exti_entry *e);

/* Adds to an error about a library that cannot be copied which file needs it. */
void exti__error_add_requester(const struct exti_step *at, struct exti_error *err);

#endif
