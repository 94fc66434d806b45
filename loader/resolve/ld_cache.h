/* /etc/ld.so.cache: which file ldconfig found for a library's name.  Pure; any thread. */
#ifndef LOADER_RESOLVE_LD_CACHE_H
#define LOADER_RESOLVE_LD_CACHE_H

#include <stdbool.h>

#include "base/span.h"

struct exti_ld_cache {
    bool big_endian;
    struct exti_span strings; /* what an entry's offsets count from */
    struct exti_span entries;
    size_t entry_size, count;
    struct exti_span hwcaps; /* string offsets, which entries refer to by number; may be empty */
};

/* Understands glibc-ld.so.cache1.1, alone or behind an ld.so-1.7.0 table, and the latter alone.
 * The bytes must outlive `out`.  EXTI_E_FORMAT for any other file. */
int exti__ld_cache_open(struct exti_span file, struct exti_ld_cache *out, struct exti_error *err);

/* The file for `name`, or NULL.  `kind` is what ldconfig calls the machine; of the glibc-hwcaps
 * entries the one whose subfolder comes first in `hwcaps` (NULL-ended) wins, and those for none are
 * passed over. */
int exti__ld_cache_find(const struct exti_ld_cache *c, const char *name, uint32_t kind,
                        const char *const *hwcaps, const char **path, struct exti_error *err);

#endif
