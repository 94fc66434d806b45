/* Shared by the fs_*_posix.c files. */
#ifndef BASE_OS_FS_POSIX_H
#define BASE_OS_FS_POSIX_H

#include <sys/stat.h>

#include "base/os/fs_id.h"

/* fs_id_posix.c */
struct exti_file_id exti__posix_id_of(const struct stat *st);
int exti__posix_check_regular(const struct stat *st, const char *path, struct exti_error *err);
/* `flags`: 0 or O_NOFOLLOW. */
int exti__posix_open_regular(const char *path, int flags, int *out, struct stat *st,
                             struct exti_error *err);

/* fs_pieces_posix.c: EXTI_E_IO with os_error ESTALE if the file ends before. */
int exti__posix_read_at(int fd, const char *path, uint8_t *p, size_t n, uint64_t at,
                        struct exti_error *err);

/* fs_owner_posix.c: EXTI_E_TRUST unless only this user and root can change the file or folder. */
int exti__posix_check_owner(const char *path, const struct stat *st, struct exti_error *err);

/* fs_temp_posix.c.  The writes give 0, or -1 with errno. */
int exti__posix_write_all(int fd, const void *p, size_t n);
int exti__posix_write_at(int fd, const uint8_t *p, size_t n, size_t at);
/* Creates an empty file beside `path`, or there (EXTI_FS_FIRST), open for `access`; flags as for
 * exti__fs_replace. */
int exti__posix_create_temp(const char *path, int access, uint32_t flags, char **temp, int *fd,
                            struct exti_error *err);
/* Renames the file to `path`, if it was written (`rc`), or else removes it; closes `fd`.  The same
 * flags. */
int exti__posix_finish_temp(int fd, const char *temp, const char *path, size_t n, uint32_t flags,
                            int rc, struct exti_error *err);

#endif
