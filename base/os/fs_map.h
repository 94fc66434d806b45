/* Files in memory: read-only snapshots, and images of them for editing. */
#ifndef BASE_OS_FS_MAP_H
#define BASE_OS_FS_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "base/os/fs_id.h"
#include "base/unread.h"
#include <extisolate.h>

/* Larger inputs are refused, whatever their format. */
#define EXTI_MAX_INPUT ((uint64_t)1 << 32)

/* A file's bytes.  They stay as they are, whatever becomes of the file. */
struct exti_mapping {
    uint8_t *p;
    size_t n;                  /* the file's size */
    size_t mapped;             /* size of the whole mapping; 0 where unmapping does not need it */
    struct exti_unread unread; /* these bytes are zeros here */
};

/* Takes one version of a regular, non-empty file into memory and gives its identity (`id` may be
 * NULL).  EXTI_E_IO with os_error ESTALE if the file keeps changing meanwhile. */
int exti__fs_map(const char *path, struct exti_mapping *out, struct exti_file_id *id,
                 struct exti_error *err);

/* Does the same, but may leave out the parts that `unread` tells.  Any later change to the file
 * gives it another identity. */
int exti__fs_map_parts(const char *path, const struct exti_unread_ops *unread,
                       struct exti_mapping *out, struct exti_file_id *id, struct exti_error *err);

/* Takes only the first `max` bytes of the file. */
int exti__fs_map_head(const char *path, size_t max, struct exti_mapping *out,
                      struct exti_error *err);

/* Copies a snapshot for editing: its bytes, without the unread parts, and `room` bytes of zeros. */
int exti__fs_map_image(const struct exti_mapping *source, uint64_t room, struct exti_mapping *out,
                       struct exti_error *err);

void exti__fs_unmap(struct exti_mapping *m);

#endif
