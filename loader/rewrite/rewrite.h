/* The rewrite pipeline: read, plan, apply, check, write one file.  This room knows the formats
 * and images of single files, but no context; loader/store/ calls it for each copy.  Any thread. */
#ifndef LOADER_REWRITE_REWRITE_H
#define LOADER_REWRITE_REWRITE_H

#include "base/format.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/os/fs_replace.h"

/* A finished image in memory. */
struct exti_rewritten {
    struct exti_mapping source, image; /* `source` is empty if an image was given */
    struct exti_file_id id;            /* of the source */
    size_t size;                       /* of the image */
    const char *path;                  /* the source's; the caller's string */
    size_t kept;                       /* the first bytes of the image are the source's, except */
    struct exti_fs_range *changed;     /* owned; these ranges */
    size_t changed_count;
};

/* Rewrites `src` in memory and checks the bytes and structure of the result against the
 * original.  `im`, NULL or exti__inspect's image of `src`, saves reading the file again; it must
 * outlive the result. */
int exti__rewrite_image(const char *src, const struct exti_image *im,
                        const struct exti_rewrite_opts *opts, struct exti_rewritten *out,
                        struct exti_error *err);
/* Replaces `dst` by the image atomically; others may read it only if they may read the source. */
int exti__rewritten_write(const struct exti_rewritten *r, const char *dst, bool sync,
                          struct exti_error *err);
void exti__rewritten_free(struct exti_rewritten *r);

#endif
