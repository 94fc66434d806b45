/* The rewrite pipeline: read, plan, apply, check, write one file.  This room knows the formats
 * and images of single files, but no context; loader/store/ calls it for each copy.  Any thread. */
#ifndef LOADER_REWRITE_REWRITE_H
#define LOADER_REWRITE_REWRITE_H

#include "base/format.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/os/fs_replace.h"

/* What a copy may leave out: nothing; code and constants, or these and data, as copies of earlier
 * versions do; or all that its loader can take from the original, and debug sections. */
enum exti_lean { EXTI_FULL, EXTI_LEAN_WITH_DATA, EXTI_LEAN_WITH_DEBUG, EXTI_LEAN };

/* A finished copy without its name. */
struct exti_rewritten {
    struct exti_mapping source; /* empty if an image was given */
    struct exti_file_id id;     /* of the source */
    const char *path;           /* the source's; the caller's string */
    struct exti_fs_clone copy;  /* starts with the source's bytes, except */
    struct exti_range *changed; /* owned; these ranges */
    size_t changed_count;
    struct exti_unread left_out; /* lean: these bytes of the source are zeros in the copy, */
    struct exti_unread unloaded; /* and of these, nobody loads these */
};

/* Makes a copy of `src` that may get the name `dst`, and checks its bytes and structure against the
 * original.  With `dst` NULL it stays in memory.  `im`, NULL or exti__inspect's image of `src`,
 * saves reading the file again; it must outlive the result.  A lean copy needs an image. */
int exti__rewrite_image(const char *src, const struct exti_image *im, const char *dst,
                        const struct exti_rewrite_opts *opts, enum exti_lean lean,
                        struct exti_rewritten *out, struct exti_error *err);
/* Replaces `dst` by the copy atomically; others may read it only if they may read the source. */
int exti__rewritten_write(struct exti_rewritten *r, const char *dst, bool sync,
                          struct exti_error *err);
/* Gives the offset of the first byte in which the file `path` differs from the image, or
 * EXTI_NO_OFFSET. */
int exti__rewritten_compare(const struct exti_rewritten *r, const char *path, uint64_t *differs,
                            struct exti_error *err);
void exti__rewritten_free(struct exti_rewritten *r);

#endif
