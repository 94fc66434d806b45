/* Images of files that are looked at more than once while copies of them are planned: for what they
 * need, for what they are, for what is to change. */
#ifndef LOADER_IMAGE_IMAGE_CACHE_H
#define LOADER_IMAGE_IMAGE_CACHE_H

#include <stdbool.h>

#include "loader/image/inspect.h"

/* Zero-filled it keeps nothing.  One thread at a time. */
struct exti_image_cache {
    bool keeps;
    void *kept; /* tree of struct kept, by the file */
};

/* The image of the file `path`, which is known to be `id`.  exti__image_cache_put gives it back. */
int exti__image_cache_get(struct exti_image_cache *images, const char *path,
                          const struct exti_file_id *id, struct exti_image **out,
                          struct exti_error *err);
/* Of exti__image_cache_get; freed unless it is kept.  NULL ok. */
void exti__image_cache_put(struct exti_image_cache *images, struct exti_image *im);

/* Makes one of exti__image_cache_get the caller's own, for exti_image_free. */
void exti__image_cache_take(struct exti_image_cache *images, struct exti_image *im);

/* Frees all that are kept, and keeps no more. */
void exti__image_cache_end(struct exti_image_cache *images);

#endif
