#include "loader/process/name_filter.h"

#include <link.h>

#include "loader/process/linkmap.h"

struct filter {
    struct exti_filtered_name *names;
    size_t count;
    bool (*passes_over)(uintptr_t address);
};

/* The table as in linkmap_elf.c, find_by_gnu_hash; a chain ends where the lowest bit is set. */
static bool has_hash(const uint32_t *table, uint32_t h)
{
    const uint32_t buckets = table[0], first = table[1], words = table[2], shift = table[3];
    const ElfW(Addr) *bloom = (const void *)(table + 4);
    const uint32_t *bucket = (const void *)(bloom + words), *chain = bucket + buckets;
    const unsigned bits = sizeof *bloom * 8;
    const ElfW(Addr) word = bloom[h / bits % words];
    uint32_t i;

    if (!(word >> h % bits & word >> (h >> shift) % bits & 1))
        return false;
    for (i = bucket[h % buckets]; i; i++) {
        const uint32_t hash = chain[i - first];

        if ((hash | 1) == (h | 1))
            return true;
        if (hash & 1)
            return false;
    }
    return false;
}

static int filter_by(void *user, const struct exti_loaded *lib, const struct exti_layout *layout)
{
    struct filter *f = user;

    if (f->passes_over(layout->lo) || (lib->gnu_hash && !lib->gnu_hash[0]))
        return 0;
    for (size_t i = 0; i < f->count; i++) {
        struct exti_filtered_name *n = &f->names[i];

        n->may = n->may || (lib->gnu_hash ? has_hash(lib->gnu_hash, n->hash)
                                          : exti__loaded_defines(lib, n->name));
    }
    return 0;
}

void exti__filter_names(struct exti_filtered_name *names, size_t count,
                        bool (*passes_over)(uintptr_t address))
{
    struct filter f = {names, count, passes_over};

    for (size_t i = 0; i < count; i++) {
        names[i].hash = exti__name_hash(names[i].name);
        names[i].may = false;
    }
    if (count)
        exti__loaded_each(filter_by, &f);
}
