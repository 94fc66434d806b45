/* Files in memory: read-only views, and private images for editing. */
#ifndef BASE_OS_FS_MAP_H
#define BASE_OS_FS_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/os/fs_id.h"
#include <extisolate.h>

/* Larger inputs are refused, whatever their format. */
#define EXTI_MAX_INPUT ((uint64_t)1 << 32)

/* A file mapped privately.  `p` may be written to (copy on write) if it was mapped for editing; the
 * file itself never changes.  Then `room` bytes of zeroed memory follow the file's bytes. */
struct exti_mapping {
    uint8_t *p;
    size_t n;      /* the file's size */
    size_t mapped; /* size of the whole mapping; 0 where unmapping does not need it */
};

/* Maps a regular, non-empty file read-only, or reads it if it is small, and gives its identity
 * (`id` may be NULL). */
int exti__fs_map(const char *path, struct exti_mapping *out, struct exti_file_id *id,
                 struct exti_error *err);

/* Maps a file like exti__fs_map, but writable and with room behind it.  Fails with os_error ESTALE
 * if the file is no longer the version given by `id`. */
int exti__fs_map_copy(const char *path, const struct exti_file_id *id, uint64_t room,
                      struct exti_mapping *out, struct exti_error *err);

void exti__fs_unmap(struct exti_mapping *m);

#endif
