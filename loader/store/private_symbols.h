/* Private names for an API library's symbols: a host that exports the same API cannot capture a
 * context's references then.  Any thread. */
#ifndef LOADER_STORE_PRIVATE_SYMBOLS_H
#define LOADER_STORE_PRIVATE_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/format.h"

/* Which names the versions of this library give: 1, of which manifests do not speak, gave none
 * that are longer. */
#define EXTI_PRIVATE_NAMES 2

/* Sorted by `from`. */
struct exti_private_symbols {
    struct exti_rename *renames; /* owned, with both strings in one block */
    size_t count;
    char *text;
    bool longer; /* some private name is longer than its symbol's */
};

/* A name of the same length with the same GNU hash: an adjacent pair of characters (a, b)
 * becomes (a+1, b-33) or (a-1, b+33), which h*33+c cannot tell apart.  So hash, bucket and bloom
 * filter stay valid.  "Py" becomes "QX".  Goes through such names, from *next, 0 for the first;
 * false when there are no more.  `out` has room for strlen(name)+1 bytes. */
bool exti__hash_preserving_name(const char *name, uint32_t *next, char *out);

/* A longer name, for one that has none of those: as many others hash to, its bucket of `buckets`
 * stays, so that the hash table need not be sorted anew but gets another hash in the same place.
 * Any bucket does if `buckets` is 0, or more than this finds a name for in good time.  Goes through
 * such names likewise.  `out` has room for strlen(name)+EXTI_PRIVATE_SUFFIX+1 bytes. */
enum { EXTI_PRIVATE_SUFFIX = 6, EXTI_PRIVATE_BUCKETS = 65536 };
bool exti__bucket_preserving_name(const char *name, uint32_t buckets, uint32_t *next, char *out);

/* Private names for every export of `api` that belongs to the API rather than to the file; none is
 * the name of another of its symbols.
 * exti__private_symbols_free them. */
int exti__private_symbols_build(const struct exti_image *api, struct exti_private_symbols *out,
                                struct exti_error *err);
void exti__private_symbols_free(struct exti_private_symbols *map);

/* Whether the version of this library that gave `names` gave the same. */
bool exti__private_symbols_are(const struct exti_private_symbols *map, unsigned names);

/* The private name of `name`, or NULL. */
const char *exti__private_symbol_find(const struct exti_private_symbols *map, const char *name);

/* The original's name for the symbol that copies call `name`; `name` itself if it has no private
 * name.  For messages. */
const char *exti__private_symbol_original(const struct exti_private_symbols *map, const char *name);

#endif
