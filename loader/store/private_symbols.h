/* Private names for an API library's symbols, so that a host that exports the same API cannot capture
 * a context's references. */
#ifndef LOADER_STORE_PRIVATE_SYMBOLS_H
#define LOADER_STORE_PRIVATE_SYMBOLS_H

#include <stdbool.h>

#include "base/format.h"

/* Sorted by `from`; names no symbol of which could be renamed are absent. */
struct exti_private_symbols {
    struct exti_rename *renames; /* owned, with both strings in one block */
    size_t count;
    char *text;
};

/* A name of the same length with the same GNU hash: some adjacent pair of characters (a, b) becomes
 * (a+1, b-33) or (a-1, b+33), which h*33+c cannot tell apart, so hash, bucket and bloom filter stay
 * valid.  "Py" becomes "QX".  `skip` passes over that many possibilities.  False when there is none.
 * `out` has room for strlen(name)+1 bytes. */
bool exti__hash_preserving_name(const char *name, unsigned skip, char *out);

/* Private names for every export of `api`, none of which another symbol of it has. */
int exti__private_symbols_build(const struct exti_image *api, struct exti_private_symbols *out,
                                struct exti_error *err);
void exti__private_symbols_free(struct exti_private_symbols *map);

/* The private name of `name`, or NULL. */
const char *exti__private_symbol_find(const struct exti_private_symbols *map, const char *name);

/* The name that the original gives what is called `name` in a copy: for messages. */
const char *exti__private_symbol_original(const struct exti_private_symbols *map, const char *name);

#endif
