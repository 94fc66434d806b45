/* Keeps images of files while copies are planned, as each file is read several times: for its
 * needs, for its properties, and for its edits. */
#ifndef LOADER_IMAGE_IMAGE_CACHE_H
#define LOADER_IMAGE_IMAGE_CACHE_H

#include <stdbool.h>

#include "base/os/fs_id.h"
#include "loader/image/inspect.h"

/* Zero-filled, it keeps nothing.  One thread at a time. */
struct exti_image_cache {
    bool keeps;
    void *kept; /* tree of struct kept, by the file */
};

/* The image of the file `path`, which has the id `id`.  Give it back with exti__image_cache_put. */
int exti__image_cache_get(struct exti_image_cache *images, const char *path,
                          const struct exti_file_id *id, struct exti_image **out,
                          struct exti_error *err);
/* Gives back an image of exti__image_cache_get, which is freed unless the cache keeps it.  NULL
 * ok. */
void exti__image_cache_put(struct exti_image_cache *images, struct exti_image *im);

/* Hands an image of exti__image_cache_get over to the caller, for exti_image_free. */
void exti__image_cache_take(struct exti_image_cache *images, struct exti_image *im);

/* Frees the kept images and keeps no more. */
void exti__image_cache_end(struct exti_image_cache *images);

#endif
