/* What a path leads to, without reading the file: its identity and its real path.
 *
 * The fs_*.h headers are the files and folders of the operating system: fs_*_posix.c and
 * fs_*_win32.c fulfil the same contracts.  Any thread may call them.  On Windows paths are UTF-8
 * with either slash, and os_error is an errno there too. */
#ifndef BASE_OS_FS_ID_H
#define BASE_OS_FS_ID_H

#include <stdbool.h>
#include <stdint.h>

#include <extisolate.h>

/* Tells one version of a file from another without reading it. */
struct exti_file_id {
    uint64_t size, inode, device;
    int64_t mtime_ns;
    int64_t ctime_ns; /* when the inode last changed; 0 on Windows */
    uint64_t mode;    /* permission bits; not part of the identity */
};

static inline bool exti__fs_same_id(const struct exti_file_id *a, const struct exti_file_id *b)
{
    return a->size == b->size && a->inode == b->inode && a->device == b->device &&
           a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

/* Whether two looks at a file, at any time, saw the same version.  Device numbers do not count:
 * they change from boot to boot. */
static inline bool exti__fs_same_version(const struct exti_file_id *a, const struct exti_file_id *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->inode == b->inode;
}

/* EXTI_E_IO with os_error ENOENT etc.; EXTI_E_IO too for directories and other non-files. */
int exti__fs_id(const char *path, struct exti_file_id *out, struct exti_error *err);

/* Gives the absolute path without symbolic links; exti__free it.  The file must exist. */
int exti__fs_realpath(const char *path, char **out, struct exti_error *err);

/* Whether the last name in the path is a regular file and not a link, so that exti__fs_realpath
 * keeps it.  False on systems where the file can be reached by other spellings of the name. */
bool exti__fs_is_named_itself(const char *path);

#endif
