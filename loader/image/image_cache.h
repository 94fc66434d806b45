/* Keeps images of files while copies are planned, as each file is read several times: for its
 * needs, for its properties, and for its edits. */
#ifndef LOADER_IMAGE_IMAGE_CACHE_H
#define LOADER_IMAGE_IMAGE_CACHE_H

#include <stddef.h>

#include "base/os/fs_id.h"
#include "loader/image/inspect.h"

/* Zero-filled, nobody uses it, and it keeps nothing.  One thread at a time. */
struct exti_image_cache {
    size_t users;
    void *kept; /* tree of struct kept, by the file */
};

/* It keeps images from the first user's beginning to the last one's end. */
void exti__image_cache_begin(struct exti_image_cache *images);
void exti__image_cache_end(struct exti_image_cache *images);

/* The image of the file `path`, which has the id `id`.  Give it back with exti__image_cache_put. */
int exti__image_cache_get(struct exti_image_cache *images, const char *path,
                          const struct exti_file_id *id, struct exti_image **out,
                          struct exti_error *err);
/* Gives back an image of exti__image_cache_get, which is freed unless the cache keeps it.  NULL
 * ok. */
void exti__image_cache_put(struct exti_image_cache *images, struct exti_image *im);

/* Hands an image of exti__image_cache_get over to the caller, for exti_image_free or
 * exti__image_cache_give. */
void exti__image_cache_take(struct exti_image_cache *images, struct exti_image *im);

/* Hands over the kept image of the file with that id; NULL: there is none. */
struct exti_image *exti__image_cache_take_file(struct exti_image_cache *images,
                                               const struct exti_file_id *id);

/* Takes an image over: keeps it, or frees it if nobody uses the cache.  NULL ok. */
void exti__image_cache_give(struct exti_image_cache *images, struct exti_image *im);

#endif
