/* Images of files that one load looks at several times: to tell what the process captures of them,
 * and to plan their copies.  Any thread; the mutex is not held. */
#ifndef LOADER_STORE_STORE_IMAGES_H
#define LOADER_STORE_STORE_IMAGES_H

#include "loader/store/store.h"

/* Around a load: images are kept meanwhile. */
void exti__store_images_begin(struct exti_store *s);
void exti__store_images_end(struct exti_store *s);

/* The image of the file `path`, read if none is kept.  Give it back. */
int exti__store_image_take(struct exti_store *s, const char *path, struct exti_image **out,
                           struct exti_error *err);
void exti__store_image_give(struct exti_store *s, struct exti_image *im);

#endif
