/* Private names for an API library's symbols: a host that exports the same API cannot capture a
 * context's references then.  Any thread. */
#ifndef LOADER_STORE_PRIVATE_SYMBOLS_H
#define LOADER_STORE_PRIVATE_SYMBOLS_H

#include <stdbool.h>

#include "base/format.h"

/* Sorted by `from`. */
struct exti_private_symbols {
    struct exti_rename *renames; /* owned, with both strings in one block */
    size_t count;
    char *text;
};

/* A name of the same length with the same GNU hash: an adjacent pair of characters (a, b)
 * becomes (a+1, b-33) or (a-1, b+33), which h*33+c cannot tell apart.  So hash, bucket and bloom
 * filter stay valid.  "Py" becomes "QX".  Skips the first `skip` such names; false when there
 * are no more.  `out` has room for strlen(name)+1 bytes. */
bool exti__hash_preserving_name(const char *name, unsigned skip, char *out);

/* A longer name, for one that has none of those: as many others hash to, its bucket of `buckets`
 * stays, so that the hash table need not be sorted anew but gets another hash in the same place.
 * `buckets` 0: any bucket.  Skips the first `skip` such names; false when there are no more.  `out`
 * has room for strlen(name)+EXTI_PRIVATE_SUFFIX+1 bytes. */
enum { EXTI_PRIVATE_SUFFIX = 6 };
bool exti__bucket_preserving_name(const char *name, uint32_t buckets, unsigned skip, char *out);

/* Private names for every export of `api` that belongs to the API rather than to the file; none is
 * the name of another of its symbols.
 * exti__private_symbols_free them. */
int exti__private_symbols_build(const struct exti_image *api, struct exti_private_symbols *out,
                                struct exti_error *err);
void exti__private_symbols_free(struct exti_private_symbols *map);

/* The private name of `name`, or NULL. */
const char *exti__private_symbol_find(const struct exti_private_symbols *map, const char *name);

/* The original's name for the symbol that copies call `name`; `name` itself if it has no private
 * name.  For messages. */
const char *exti__private_symbol_original(const struct exti_private_symbols *map, const char *name);

#endif
