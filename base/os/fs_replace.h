/* Whole-or-nothing replacement of files. */
#ifndef BASE_OS_FS_REPLACE_H
#define BASE_OS_FS_REPLACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/unread.h"
#include <extisolate.h>

#define EXTI_FS_SYNC 1u       /* fsync the file and its folder */
#define EXTI_FS_EXECUTABLE 2u /* mode 0755 less the umask instead of 0644 */
#define EXTI_FS_PRIVATE 4u    /* for the owner only */
/* POSIX: with the mode and, as far as the caller may, the owner of the file that it replaces. */
#define EXTI_FS_LIKE_OLD 8u
/* exti__fs_clone_edited: there is no file `path` yet, and nobody opens it before it is complete. */
#define EXTI_FS_FIRST 16u

/* Writes `n` bytes to a new file in `path`'s folder and renames it to `path`: afterwards `path` is
 * either the old file or the whole new one, and no other file is left behind. */
int exti__fs_replace(const char *path, const void *p, size_t n, uint32_t flags,
                     struct exti_error *err);

/* One version of a file, of which a new file is to be an edited copy. */
struct exti_fs_source {
    const char *path;
    const struct exti_file_id *id;
    const struct exti_mapping *bytes; /* of that version */
    size_t kept;                      /* the copy starts with this many of them, but for edits */
    /* POSIX: these of them are zeros in the copy, and holes in its file; NULL: none. */
    const struct exti_unread *left_out;
};

/* A new file beside the one that it will replace.  `image` is private memory that has all of its
 * bytes: the source's, and zeros up to `size`. */
struct exti_fs_clone {
    char *temp; /* owned; NULL where there is no file yet */
    int fd;
    size_t size, kept;
    struct exti_unread left_out;
    struct exti_mapping image;
};

/* Begins a new file beside `path`.  EXTI_E_IO with os_error ESTALE if the source is no longer that
 * version.  End with exti__fs_clone_replace or exti__fs_clone_drop. */
int exti__fs_clone(const char *path, const struct exti_fs_source *source, size_t size,
                   uint32_t flags, struct exti_fs_clone *out, struct exti_error *err);

/* Writes what has been edited in the image, `changed` (ordered, below `kept`) and all from `kept`
 * on, and renames the file to `path`, as exti__fs_replace does.  Drops the clone in any case. */
int exti__fs_clone_replace(struct exti_fs_clone *c, const char *path,
                           const struct exti_range *changed, size_t changed_count, uint32_t flags,
                           struct exti_error *err);

/* POSIX: puts a copy of the source in the place of `path`, with edits that are known: `bytes` has
 * those of the `count` ranges (ordered, below source->kept), then all from there to `size`.  Reads
 * none of source->bytes.  Errors as above. */
int exti__fs_clone_edited(const char *path, const struct exti_fs_source *source, size_t size,
                          const struct exti_range *changed, size_t count, const uint8_t *bytes,
                          uint32_t flags, struct exti_error *err);

/* POSIX: the same by the file `from`, which was made so with edits at the same places.  It gets the
 * new edits and then the name `path`, and is gone if that fails.  EXTI_E_IO with os_error ESTALE if
 * it is not `id` any more, or not this user's: then it is left alone. */
int exti__fs_clone_again(const char *from, const struct exti_file_id *id, const char *path,
                         size_t kept, size_t size, const struct exti_range *changed, size_t count,
                         const uint8_t *bytes, struct exti_error *err);

/* Removes the file, and frees the image. */
void exti__fs_clone_drop(struct exti_fs_clone *c);

#endif
