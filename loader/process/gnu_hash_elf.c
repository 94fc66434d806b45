#include "loader/process/gnu_hash_elf.h"

#include <link.h>
#include <stdbool.h>

uint32_t exti__gnu_hash(const char *name)
{
    uint32_t h = 5381;

    for (; *name; name++)
        h = h * 33 + (uint8_t)*name;
    return h;
}

static bool passes_bloom(const uint32_t *table, uint32_t h)
{
    const uint32_t words = table[2], shift = table[3];
    const ElfW(Addr) *bloom = (const void *)(table + 4);
    const unsigned bits = sizeof *bloom * 8;
    const ElfW(Addr) word = bloom[h / bits % words];

    return word >> h % bits & word >> (h >> shift) % bits & 1;
}

/* The lowest bit of a hash in a chain is set where the chain ends. */
uint32_t exti__gnu_hash_next(const uint32_t *table, uint32_t h, uint32_t after)
{
    const uint32_t buckets = table[0], first = table[1], words = table[2];
    const ElfW(Addr) *bloom = (const void *)(table + 4);
    const uint32_t *bucket = (const void *)(bloom + words), *chain = bucket + buckets;
    uint32_t i;

    if (after)
        i = chain[after - first] & 1 ? 0 : after + 1;
    else
        i = passes_bloom(table, h) ? bucket[h % buckets] : 0;
    for (; i; i++) {
        if ((chain[i - first] | 1) == (h | 1))
            return i;
        if (chain[i - first] & 1)
            return 0;
    }
    return 0;
}
