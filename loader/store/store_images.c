#include "loader/store/store_images.h"

#include "base/os/fs_id.h"
#include "loader/image/inspect.h"

void exti__store_images_begin(struct exti_store *s)
{
    pthread_mutex_lock(&s->lock);
    exti__image_cache_begin(&s->images);
    pthread_mutex_unlock(&s->lock);
}

void exti__store_images_end(struct exti_store *s)
{
    pthread_mutex_lock(&s->lock);
    exti__image_cache_end(&s->images);
    pthread_mutex_unlock(&s->lock);
}

int exti__store_image_take(struct exti_store *s, const char *path, struct exti_image **out,
                           struct exti_error *err)
{
    struct exti_file_id id;

    *out = NULL;
    if (!exti__fs_id(path, &id, NULL)) {
        pthread_mutex_lock(&s->lock);
        *out = exti__image_cache_take_file(&s->images, &id);
        pthread_mutex_unlock(&s->lock);
    }
    return *out ? 0 : exti__inspect(path, out, err);
}

void exti__store_image_give(struct exti_store *s, struct exti_image *im)
{
    pthread_mutex_lock(&s->lock);
    exti__image_cache_give(&s->images, im);
    pthread_mutex_unlock(&s->lock);
}
