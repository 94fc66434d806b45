/* Whole-or-nothing replacement of files. */
#ifndef BASE_OS_FS_REPLACE_H
#define BASE_OS_FS_REPLACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/os/fs_id.h"
#include <extisolate.h>

#define EXTI_FS_SYNC 1u       /* fsync the file and its folder */
#define EXTI_FS_EXECUTABLE 2u /* mode 0777 less the umask instead of 0666 */
#define EXTI_FS_PRIVATE 4u    /* for the owner only */

/* Writes `n` bytes to a new file in `path`'s folder and renames it to `path`: afterwards `path` is
 * either the old file or the whole new one, and no other file is left behind. */
int exti__fs_replace(const char *path, const void *p, size_t n, uint32_t flags,
                     struct exti_error *err);

/* A file from which the kernel can copy most bytes of an image. */
struct exti_fs_source {
    const char *path;
    const struct exti_file_id *id; /* the version that the image was made from */
    size_t kept;                   /* the image starts with this many bytes of the file */
    const struct exti_fs_range {
        size_t at, n;
    } *changed; /* except these, ordered by offset */
    size_t changed_count;
};

/* Replaces like exti__fs_replace.  Ignores `from` if the file is no longer that version. */
int exti__fs_replace_from(const char *path, const void *p, size_t n,
                          const struct exti_fs_source *from, uint32_t flags,
                          struct exti_error *err);

#endif
