/* What the systems' files behind fs.h share. */
#ifndef BASE_OS_FS_PRIV_H
#define BASE_OS_FS_PRIV_H

#include "base/os/fs.h"

#define EXTI_TEMP_RANDOM 16 /* bytes; hex in the name */

/* "dir/.exti-<hex>" for "dir/name"; exti__free it; NULL when memory is out.  The name is random so
 * that no one can put a file in its place beforehand, and no two writers meet. */
char *exti__fs_temp_path(const char *path, const uint8_t random[EXTI_TEMP_RANDOM]);

static inline bool exti__fs_same_id(const struct exti_file_id *a, const struct exti_file_id *b)
{
    return a->size == b->size && a->inode == b->inode && a->device == b->device &&
           a->mtime_ns == b->mtime_ns;
}

#endif
