/* Writing an exports trie, with the layout and padding of ld64.lld. */
#ifndef MACHO_EDIT_MACHO_TRIE_BUILD_H
#define MACHO_EDIT_MACHO_TRIE_BUILD_H

#include "base/buf.h"
#include "macho/read/macho_trie.h"

/* Appends a trie for `list`.  The exports that a walk of an lld trie reports, in its order, give
 * the same bytes again.  Duplicate names are EXTI_E_FORMAT, function variants
 * EXTI_E_UNSUPPORTED. */
int exti__macho_trie_build(const struct macho_export *list, size_t count, struct exti_buf *out,
                           struct exti_error *err);

/* Appends a copy of `trie` whose exports `edit` may change, except for their names. */
int exti__macho_trie_map(struct exti_span trie,
                         int (*edit)(void *user, struct macho_export *e, struct exti_error *err),
                         void *user, struct exti_buf *out, struct exti_error *err);

#endif
