/* Which library each reference of a copy is bound to. */
#ifndef MACHO_EDIT_MACHO_TARGETS_H
#define MACHO_EDIT_MACHO_TARGETS_H

#include "macho/edit/macho_build.h"
#include "macho/read/macho_symbols.h"

/* A name that the file refers to. */
struct macho_bound {
    const char *name;
    bool own;         /* the file defines it */
    uint64_t address; /* own: where, from the image's start */
    bool provided;    /* one of b->bind exports it */
    int32_t copied; /* the new number of the library that the symbol table names for it, if an edit
                       * gives that library another name; else 0 */
};

struct macho_rebind {
    struct macho_build *b;
    struct macho_bound *names; /* owned; by name */
    size_t count, cap;
    bool weak_left;                   /* something is still looked up among all weak definitions */
    const char *asked;                /* exti__macho_bound's last question */
    const struct macho_bound *answer; /* ... and the answer */
};

/* Fills r->names.  The caller frees r->names, also on failure. */
int exti__macho_know_names(struct macho_rebind *r, struct exti_error *err);

/* NULL for a name to which neither a binding nor an undefined symbol refers.  `name` lies in the
 * file's bytes: repeated questions about one place cost nothing, however long the name is and
 * however often a stream binds it. */
const struct macho_bound *exti__macho_bound(struct macho_rebind *r, const char *name);

/* The ordinal in the copy of the original's library `was`; 0 if it was removed. */
int32_t exti__macho_new_library(const struct macho_build *b, int32_t was);

/* The ordinal in the copy of a reference to `name` that had the ordinal `was`. */
int exti__macho_new_ordinal(struct macho_rebind *r, const char *name, int32_t was, int32_t *now,
                            struct exti_error *err);

/* Calls `each` for every undefined symbol. */
int exti__macho_undefined(const struct macho_build *b,
                          int (*each)(void *user, const struct macho_nlist *n,
                                      struct exti_error *err),
                          void *user, struct exti_error *err);

#endif
