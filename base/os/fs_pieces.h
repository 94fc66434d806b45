/* Files read piece by piece: for those who need each byte only once, memory for a whole file would
 * cost more than reading it. */
#ifndef BASE_OS_FS_PIECES_H
#define BASE_OS_FS_PIECES_H

#include <stddef.h>
#include <stdint.h>

#include "base/os/fs_id.h"

/* A good size for a piece: small enough to stay in the processor's cache. */
#define EXTI_PIECE ((size_t)256 << 10)

struct exti_pieces {
    const char *path; /* the caller's */
    intptr_t handle;
    struct exti_file_id id; /* when it was opened */
};

/* Opens a regular file. */
int exti__fs_pieces_open(const char *path, struct exti_pieces *out, struct exti_error *err);

/* Reads `n` bytes at the offset `at`.  EXTI_E_IO with os_error ESTALE if the file ends before. */
int exti__fs_pieces_read(const struct exti_pieces *f, uint64_t at, void *p, size_t n,
                         struct exti_error *err);

/* After the last piece: EXTI_E_IO with os_error ESTALE if the file has changed since it was opened,
 * so that the pieces may be of two versions. */
int exti__fs_pieces_check(const struct exti_pieces *f, struct exti_error *err);

void exti__fs_pieces_close(struct exti_pieces *f);

#endif
