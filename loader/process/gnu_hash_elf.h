/* DT_GNU_HASH of a library in memory: glibc, do_lookup_x.  A table has a header of four words, a
 * bloom filter, buckets, and a chain of hashes for each bucket. */
#ifndef LOADER_PROCESS_GNU_HASH_ELF_H
#define LOADER_PROCESS_GNU_HASH_ELF_H

#include <stdint.h>

/* What a table knows a name by. */
uint32_t exti__gnu_hash(const char *name);

/* The index of the first symbol after `after` (0: of the first) that has the hash `h`; 0 if none
 * has.  The table must have buckets. */
uint32_t exti__gnu_hash_next(const uint32_t *table, uint32_t h, uint32_t after);

#endif
