/* Files: read-only views, private images for editing, whole-or-nothing replacement, locks.
 * fs_posix.c and fs_win32.c fulfil the same contracts.  Any thread.  Paths are UTF-8 on Windows, with
 * either slash; os_error is an errno there too. */
#ifndef BASE_OS_FS_H
#define BASE_OS_FS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/os/path.h"
#include "base/span.h"
#include <extisolate.h>

/* Inputs past this are refused, whatever their format. */
#define EXTI_MAX_INPUT ((uint64_t)1 << 32)

/* No path that the system takes is longer; with its NUL. */
#ifdef _WIN32
#define EXTI_PATH_MAX ((size_t)3 * 8192) /* in UTF-8; see loader/base/win32.h */
#else
#define EXTI_PATH_MAX PATH_MAX
#endif

/* What tells one version of a file from another without reading it. */
struct exti_file_id {
    uint64_t size, inode, device;
    int64_t mtime_ns;
    uint64_t mode; /* permission bits; no part of the identity */
};

/* EXTI_E_IO with os_error ENOENT etc.; directories and other non-files are EXTI_E_IO too. */
int exti__fs_id(const char *path, struct exti_file_id *out, struct exti_error *err);

/* A file mapped privately: `p` may be written to (copy on write) when mapped for editing; the file
 * itself never changes.  `room` extra bytes of zeroed memory follow the file's bytes. */
struct exti_mapping {
    uint8_t *p;
    size_t n;      /* the file's size */
    size_t mapped; /* of the whole mapping, for unmapping; 0 where the system or the heap knows */
};

/* Maps a regular, non-empty file read-only, or reads a small one, and tells its identity (`id` may
 * be NULL). */
int exti__fs_map(const char *path, struct exti_mapping *out, struct exti_file_id *id,
                 struct exti_error *err);
/* As exti__fs_map, writable and with room behind it; os_error ESTALE if the file is no longer the
 * version that `id` tells. */
int exti__fs_map_copy(const char *path, const struct exti_file_id *id, uint64_t room,
                      struct exti_mapping *out, struct exti_error *err);
void exti__fs_unmap(struct exti_mapping *m);

#define EXTI_FS_SYNC 1u       /* fsync the file and its folder */
#define EXTI_FS_EXECUTABLE 2u /* mode 0777 less the umask instead of 0666 */
#define EXTI_FS_PRIVATE 4u    /* for the owner only */

/* Writes `n` bytes to a new file in `path`'s folder and renames it to `path`: afterwards `path` is
 * the old file or the whole new one, and no other file is left behind. */
int exti__fs_replace(const char *path, const void *p, size_t n, uint32_t flags,
                     struct exti_error *err);

/* Where most of an image's bytes can be copied from without a look at them. */
struct exti_fs_source {
    const char *path;
    const struct exti_file_id *id; /* the version that they are of */
    size_t kept;                   /* the image's first bytes are the file's */
    const struct exti_fs_range {
        size_t at, n;
    } *changed; /* but for these, by offset */
    size_t changed_count;
};
/* As exti__fs_replace.  If the source is that version no more it does not count. */
int exti__fs_replace_from(const char *path, const void *p, size_t n,
                          const struct exti_fs_source *from, uint32_t flags,
                          struct exti_error *err);

/* Whether a file's name is that of exti__fs_replace's unfinished ones, as a killed process leaves. */
bool exti__fs_is_temporary(const char *name);

/* Reads a whole file of at most `max` bytes into *out, NUL-terminated beyond *n; exti__free it. */
int exti__fs_read(const char *path, size_t max, char **out, size_t *n, struct exti_error *err);

int exti__fs_mkdir(const char *path, bool *made, struct exti_error *err); /* parents must exist */
int exti__fs_mkdtemp(char **out, struct exti_error *err); /* private, in the system's temp folder;
                                                          * as exti__fs_realpath gives it */
/* A file; gone already is fine.  os_error EBUSY if the system refuses because a process has it loaded
 * or open (Windows). */
int exti__fs_remove(const char *path, struct exti_error *err);
/* The same; but what is in use, and can only be renamed, becomes a temporary file beside it. */
void exti__fs_discard(const char *path);
int exti__fs_rmdir(const char *path, bool *removed, struct exti_error *err); /* if it is empty */

/* The absolute path without symbolic links; exti__free it.  The file must exist. */
int exti__fs_realpath(const char *path, char **out, struct exti_error *err);

/* Whether the path's last name is a regular file's and no link, so that exti__fs_realpath ends in it.  False
 * where other spellings of the name may lead to the file too. */
bool exti__fs_is_named_itself(const char *path);

/* Calls `each` with every name in `dir` but . and .. until it returns non-zero, which is passed on. */
int exti__fs_list(const char *dir, int (*each)(void *user, const char *name), void *user,
                  struct exti_error *err);

/* An exclusive lock between threads and processes, on a file created if need be, but not through a
 * symbolic link.  One that is there need only be readable. */
struct exti_lock {
#ifdef _WIN32
    void *file; /* a HANDLE, or NULL */
#else
    int fd;
#endif
    bool made; /* the file was not there */
};
int exti__fs_lock(const char *path, struct exti_lock *out, struct exti_error *err);
void exti__fs_unlock(struct exti_lock *lock);
/* Makes `text` the content of the lock's file. */
int exti__fs_lock_note(const struct exti_lock *lock, const char *text, struct exti_error *err);

/* Names the period in which the system's file cache has lived without interruption (the boot), so
 * that what was written within it cannot have been torn by a power loss; "" where unknown. */
int exti__fs_boot(char *out, size_t cap);

/* At most 256 bytes that no one can guess, for what an error says they were for. */
int exti__fs_random(void *p, size_t n, const char *use, struct exti_error *err);

#endif
