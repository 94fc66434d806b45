/* What is mapped where, and what files have on the disk. */
#ifndef TESTS_ISOLATION_MAPS_H
#define TESTS_ISOLATION_MAPS_H

#include <inttypes.h>

#include "tests/isolation/iso.h"

/* A line of /proc/self/maps. */
struct map {
    uintptr_t from, to;
    char access[5], path[1024];
};

static inline struct map map_at(const void *address)
{
    const uintptr_t at = (uintptr_t)address;
    FILE *f = fopen("/proc/self/maps", "r");
    char line[1200];

    want(f);
    while (fgets(line, sizeof line, f)) {
        struct map m = {.path = ""};

        want(sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %*s %1023[^\n]", &m.from, &m.to,
                    m.access, m.path) >= 3);
        if (at >= m.from && at < m.to) {
            fclose(f);
            return m;
        }
    }
    fprintf(stderr, "nothing is mapped there\n");
    iso_fail_at(__FILE__, __LINE__);
    return (struct map){.path = ""};
}

static inline const char *mapped_at(const void *address)
{
    return iso_text("%s", map_at(address).path);
}

/* The bytes of the file for which the file system has no block. */
static inline long left_out(const char *path)
{
    struct stat st;

    want(stat(path, &st) == 0);
    return (long)(st.st_size - st.st_blocks * 512);
}

#endif
