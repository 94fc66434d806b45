/* The rewrite pipeline: read, plan, apply, check, write. */
#ifndef LOADER_REWRITE_REWRITE_H
#define LOADER_REWRITE_REWRITE_H

#include "base/format.h"
#include "base/os/fs.h"

/* A finished image in memory. */
struct exti_rewritten {
    struct exti_mapping source, image; /* the former empty where an image was given */
    struct exti_file_id id;            /* of the source */
    size_t size;                       /* of the image */
    const char *path;                  /* the source's; the caller's string */
    size_t kept; /* of the image's bytes, that are the source's but for those in */
    struct exti_fs_range *changed; /* owned */
    size_t changed_count;
};

/* Rewrites `src` in memory and checks the result, bytes and structure, against the original.  `im`,
 * unless it is NULL, is exti__inspect's of `src`, and spares reading that again; it outlives the
 * result. */
int exti__rewrite_image(const char *src, const struct exti_image *im,
                        const struct exti_rewrite_opts *opts, struct exti_rewritten *out,
                        struct exti_error *err);
/* Writes the image to `dst` as a whole, readable for others only if the source is. */
int exti__rewritten_write(const struct exti_rewritten *r, const char *dst, bool sync,
                          struct exti_error *err);
void exti__rewritten_free(struct exti_rewritten *r);

#endif
