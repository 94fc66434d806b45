#include "loader/image/image_cache.h"

#include <search.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"

struct kept {
    struct exti_file_id id;
    struct exti_image *im;
};

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* A changed file is another file. */
static int by_file(const void *a, const void *b)
{
    const struct exti_file_id *x = &((const struct kept *)a)->id,
                              *y = &((const struct kept *)b)->id;
    int rc = order(x->inode, y->inode);

    rc = rc ? rc : order(x->device, y->device);
    rc = rc ? rc : order(x->size, y->size);
    rc = rc ? rc : (x->mtime_ns > y->mtime_ns) - (x->mtime_ns < y->mtime_ns);
    return rc ? rc : (x->ctime_ns > y->ctime_ns) - (x->ctime_ns < y->ctime_ns);
}

static struct kept *find_kept(const struct exti_image_cache *images, const struct exti_file_id *id)
{
    const struct kept key = {.id = *id};
    struct kept *const *node = tfind(&key, &images->kept, by_file);

    return node ? *node : NULL;
}

/* Without memory for it, the file is read again next time. */
static void keep_image(struct exti_image_cache *images, struct exti_image *im)
{
    struct kept *k = exti__alloc(sizeof *k);
    void **node;

    if (!k)
        return;
    *k = (struct kept){*exti__inspected_id(im), im};
    node = tsearch(k, &images->kept, by_file);
    if (!node || *node != k)
        exti__free(k);
}

int exti__image_cache_get(struct exti_image_cache *images, const char *path,
                          const struct exti_file_id *id, struct exti_image **out,
                          struct exti_error *err)
{
    const struct kept *k = find_kept(images, id);
    int rc;

    if (k) {
        *out = k->im;
        return 0;
    }
    rc = exti__inspect(path, out, err);
    if (!rc && images->users)
        keep_image(images, *out);
    return rc;
}

static struct kept *kept_of(const struct exti_image_cache *images, const struct exti_image *im)
{
    struct kept *k = find_kept(images, exti__inspected_id(im));

    return k && k->im == im ? k : NULL;
}

void exti__image_cache_put(struct exti_image_cache *images, struct exti_image *im)
{
    if (im && !kept_of(images, im))
        exti_image_free(im);
}

void exti__image_cache_take(struct exti_image_cache *images, struct exti_image *im)
{
    struct kept *k = kept_of(images, im);

    if (!k)
        return;
    tdelete(k, &images->kept, by_file);
    exti__free(k);
}

struct exti_image *exti__image_cache_take_file(struct exti_image_cache *images,
                                               const struct exti_file_id *id)
{
    const struct kept *k = find_kept(images, id);
    struct exti_image *im = k ? k->im : NULL;

    if (im)
        exti__image_cache_take(images, im);
    return im;
}

void exti__image_cache_give(struct exti_image_cache *images, struct exti_image *im)
{
    if (im && images->users)
        keep_image(images, im);
    exti__image_cache_put(images, im);
}

static void free_kept(void *p)
{
    struct kept *k = p;

    exti_image_free(k->im);
    exti__free(k);
}

void exti__image_cache_begin(struct exti_image_cache *images)
{
    images->users++;
}

void exti__image_cache_end(struct exti_image_cache *images)
{
    if (!--images->users)
        exti__tree_free(&images->kept, by_file, free_kept);
}
