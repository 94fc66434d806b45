/* The parts of binding a copy's references anew, for macho_rebind alone. */
#ifndef MACHO_EDIT_MACHO_REBIND_H
#define MACHO_EDIT_MACHO_REBIND_H

#include "macho/read/macho_priv.h"

/* What is known of a name that the file refers to. */
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

/* NULL for a name to which neither a binding nor an undefined symbol refers.  `name` is in the
 * file's bytes: asking again for the one at the same place costs nothing, however long it is and
 * however often a stream binds it. */
const struct macho_bound *exti__macho_bound(struct macho_rebind *r, const char *name);

/* The library to which `name` is bound in the copy, by the rules in macho_rebind.c. */
int exti__macho_new_ordinal(struct macho_rebind *r, const char *name, int32_t was, int32_t *now,
                            struct exti_error *err);

/* macho_rebind_opcodes.c: LC_DYLD_INFO's streams. */
int exti__macho_rebind_opcodes(struct macho_rebind *r, struct exti_error *err);

#endif
