/* Small files, read whole. */
#ifndef BASE_OS_FS_READ_H
#define BASE_OS_FS_READ_H

#include <stddef.h>

#include <extisolate.h>

/* Reads a file of at most `max` bytes into *out and appends a NUL that *n does not count;
 * exti__free it. */
int exti__fs_read(const char *path, size_t max, char **out, size_t *n, struct exti_error *err);

/* Likewise, but EXTI_E_TRUST for a link, and for a file that others than this user and root can
 * change: see fs_owner.h. */
int exti__fs_read_trusted(const char *path, size_t max, char **out, size_t *n,
                          struct exti_error *err);

#endif
