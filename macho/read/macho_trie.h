/* The exports trie. */
#ifndef MACHO_READ_MACHO_TRIE_H
#define MACHO_READ_MACHO_TRIE_H

#include "macho/read/macho_file.h"

struct macho_export {
    const char *name;
    uint64_t flags;   /* EXPORT_SYMBOL_FLAGS_* */
    uint64_t address; /* from the image's start; 0 for a re-export */
    uint64_t other;   /* the resolver's address, the function variant, or a re-export's ordinal */
    const char *import_name; /* of a re-export; "" means the same name */
};

/* The exports trie, from whichever load command locates it; empty if there is none. */
struct exti_span exti__macho_trie(const struct macho_file *f);

/* Maximum total length of the names that one walk reports.  Without a limit, nodes that repeat long
 * names could take time and memory quadratic in the trie's size. */
uint64_t exti__macho_trie_names_limit(struct exti_span trie);

/* Calls `each` for every export, in trie order, until it returns non-zero, which is passed on.  The
 * strings are valid during the call only.  Linear in the trie's size: two edges to one node are an
 * error. */
int exti__macho_trie_walk(struct exti_span trie,
                          int (*each)(void *user, const struct macho_export *e,
                                      struct exti_error *err),
                          void *user, struct exti_error *err);

/* Looks `name` up as dyld does and sets *found.  `out` may be NULL; out->name is `name`. */
int exti__macho_trie_find(struct exti_span trie, const char *name, bool *found,
                          struct macho_export *out, struct exti_error *err);

#endif
