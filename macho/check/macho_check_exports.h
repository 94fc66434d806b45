/* Exports decoded a second time. */
#ifndef MACHO_CHECK_MACHO_CHECK_EXPORTS_H
#define MACHO_CHECK_MACHO_CHECK_EXPORTS_H

#include "macho/check/macho_check_state.h"

/* Appends the file's exports, from its trie or, without one, its symbol table.  Reports breaches
 * of dyld's rules for the trie. */
int exti__macho_exports(struct macho_check *c, const struct macho_file *f,
                        struct macho_exports *out, struct exti_error *err);

/* Sorts by name, once the list is complete. */
void exti__macho_exports_sort(struct macho_exports *list);

/* In a sorted list; NULL if there is none. */
const struct macho_exported *exti__macho_exports_find(const struct macho_exports *list,
                                                      const char *name);
void exti__macho_exports_free(struct macho_exports *list);

#endif
