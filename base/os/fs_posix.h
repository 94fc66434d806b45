/* Shared by the fs_*_posix.c files. */
#ifndef BASE_OS_FS_POSIX_H
#define BASE_OS_FS_POSIX_H

#include <sys/stat.h>

#include "base/os/fs_id.h"

/* fs_id_posix.c */
struct exti_file_id exti__posix_id_of(const struct stat *st);
int exti__posix_open_regular(const char *path, int *out, struct stat *st, struct exti_error *err);

/* fs_replace_posix.c: 0, or -1 with errno. */
int exti__posix_write_all(int fd, const void *p, size_t n);

#endif
