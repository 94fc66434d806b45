/* Reads /etc/ld.so.cache, where ldconfig keeps the file for each library's name.  Pure; any
 * thread. */
#ifndef LOADER_RESOLVE_LD_CACHE_H
#define LOADER_RESOLVE_LD_CACHE_H

#include <stdbool.h>

#include "base/span.h"

struct exti_ld_cache {
    bool big_endian;
    struct exti_span strings; /* what the offsets of entries are relative to */
    struct exti_span entries;
    size_t entry_size, count;
    struct exti_span hwcaps; /* string offsets, to which entries refer by index; may be empty */
};

/* Reads a glibc-ld.so.cache1.1 table, alone or behind an ld.so-1.7.0 table, or the latter alone;
 * EXTI_E_FORMAT for any other file.  The bytes must outlive `out`. */
int exti__ld_cache_open(struct exti_span file, struct exti_ld_cache *out, struct exti_error *err);

/* The file for `name`, or NULL.  `kind` is exti__elf_kind_in_cache's.  Of entries in
 * glibc-hwcaps subfolders, the one whose subfolder comes first in `hwcaps` (NULL-ended) wins;
 * those not in `hwcaps` are ignored. */
int exti__ld_cache_find(const struct exti_ld_cache *c, const char *name, uint32_t kind,
                        const char *const *hwcaps, const char **path, struct exti_error *err);

#endif
