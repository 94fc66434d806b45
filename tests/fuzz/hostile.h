/* Writing handmade files of a corpus. */
#ifndef TESTS_FUZZ_HOSTILE_H
#define TESTS_FUZZ_HOSTILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static const char *hostile_dir;

/* Takes the folder from the command line. */
static inline void hostile_begin(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s DIR\n", argv[0]);
        exit(2);
    }
    hostile_dir = argv[1];
}

/* Writes a file behind the four bytes that the fuzzer reads, of which the first chooses the
 * edits. */
static inline void hostile_write(const char *name, uint8_t edits, const void *p, size_t n)
{
    const uint8_t prefix[4] = {edits, 0x11, 0x22, 1};
    char path[4096];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", hostile_dir, name);
    f = fopen(path, "wb");
    if (!f || fwrite(prefix, 1, 4, f) != 4 || fwrite(p, 1, n, f) != n || fclose(f)) {
        perror(path);
        exit(1);
    }
}

#endif
