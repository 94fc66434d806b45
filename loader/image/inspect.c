#include "loader/image/inspect.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/opts.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "loader/image/formats.h"
#include "loader/image/hazards.h"

/* What exti_inspect returns.  The image comes first, so a pointer to it is a pointer to the
 * whole. */
struct exti_inspected {
    struct exti_image im;
    struct exti_mapping mapping; /* the image's strings point into it */
    struct exti_file_id id;
    char *path;                           /* owned; NULL if the mapping has all bytes */
    _Atomic(struct exti_mapping *) whole; /* owned; NULL until someone asks for it */
};

int exti__inspect(const char *path, struct exti_image **out, struct exti_error *err)
{
    struct exti_inspected *made, *lacks = NULL;
    const struct exti_format_ops *ops;
    struct exti_span file;
    int rc;

    if (!path || !*path || !out)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "path or out is empty");
    made = exti__calloc(1, sizeof *made);
    if (!made)
        return exti__fail_nomem(err);
    rc = exti__fs_map_parts(path, &exti__formats_unread, &made->mapping, &made->id, err);
    if (rc)
        goto fail;
    if (made->mapping.unread.count) {
        rc = exti__copy_text(&made->path, path, err);
        if (rc)
            goto fail;
        lacks = made;
    }
    file = exti__span(made->mapping.p, made->mapping.n);
    rc = exti__format_of(file, &ops, err);
    if (rc)
        goto fail;
    rc = ops->read(file, &made->im, err);
    if (rc)
        goto fail;
    made->im.format = ops->format;
    made->im.info.format = exti__format_name(ops->format);
    made->im.bytes = file;
    made->im.lacks = lacks;
    for (size_t i = 0; i < made->im.info.slice_count; i++) {
        made->im.slices[i].format = ops->format;
        made->im.slices[i].info.format = made->im.info.format;
        made->im.slices[i].bytes = file;
    }
    *out = &made->im;
    return 0;
fail:
    exti__error_file(err, path);
    exti_image_free(&made->im);
    return rc;
}

int exti_inspect(const char *path, struct exti_image **out, struct exti_error *err)
{
    struct exti_image *im;
    int rc = exti__inspect(path, out ? &im : NULL, err);

    if (rc)
        return rc;
    exti__hazards_find(im);
    for (size_t i = 0; i < im->info.slice_count; i++)
        exti__hazards_find(&im->slices[i]);
    *out = im;
    return 0;
}

const struct exti_file_id *exti__inspected_id(const struct exti_image *im)
{
    return &((const struct exti_inspected *)im)->id;
}

const struct exti_mapping *exti__inspected_mapping(const struct exti_image *im)
{
    return &((const struct exti_inspected *)im)->mapping;
}

static void free_whole(struct exti_mapping *whole)
{
    if (whole)
        exti__fs_unmap(whole);
    exti__free(whole);
}

static struct exti_mapping *read_whole(const struct exti_inspected *made)
{
    struct exti_mapping *whole = exti__calloc(1, sizeof *whole);
    struct exti_file_id id;

    if (whole && !exti__fs_map(made->path, whole, &id, NULL) && exti__fs_same_id(&id, &made->id))
        return whole;
    free_whole(whole);
    return NULL;
}

struct exti_span exti__inspected_whole(const struct exti_image *im)
{
    struct exti_mapping *whole, *none = NULL;

    if (!im->lacks)
        return im->bytes;
    whole = atomic_load(&im->lacks->whole);
    if (!whole) {
        whole = read_whole(im->lacks);
        if (!whole)
            return (struct exti_span){0};
        if (!atomic_compare_exchange_strong(&im->lacks->whole, &none, whole)) {
            free_whole(whole);
            whole = none;
        }
    }
    return exti__span(whole->p, whole->n);
}

void exti_image_free(struct exti_image *im)
{
    struct exti_inspected *made = (struct exti_inspected *)im;

    if (!im)
        return;
    exti__image_clear(im);
    free_whole(made->whole);
    exti__free(made->path);
    exti__fs_unmap(&made->mapping);
    exti__free(made);
}

int exti_image_info(const struct exti_image *im, struct exti_image_info *out)
{
    return im ? exti__opts_give(out, &im->info, sizeof im->info) : EXTI_E_ARG;
}

const char *exti_image_needed(const struct exti_image *im, size_t i)
{
    return im && i < im->info.needed_count ? im->needed[i].name : NULL;
}

uint32_t exti_image_needed_flags(const struct exti_image *im, size_t i)
{
    return im && i < im->info.needed_count ? im->needed[i].flags : 0;
}

const char *exti_image_path(const struct exti_image *im, size_t i)
{
    return im && i < im->path_count ? im->paths[i] : NULL;
}

const struct exti_image *exti_image_slice(const struct exti_image *im, size_t i)
{
    return im && i < im->info.slice_count ? &im->slices[i] : NULL;
}

int exti_image_symbol(const struct exti_image *im, size_t i, struct exti_symbol_info *out)
{
    struct exti_symbol_info s;

    if (!im || i >= im->info.symbol_count)
        return EXTI_E_ARG;
    memset(&s, 0, sizeof s); /* the padding as well, which callers may compare */
    s.size = sizeof s;
    s.name = im->symbols[i].name;
    s.version = im->symbols[i].version;
    s.flags = im->symbols[i].flags;
    s.library = im->symbols[i].library;
    s.forward = im->symbols[i].forward;
    s.ordinal = im->symbols[i].ordinal;
    return exti__opts_give(out, &s, sizeof s);
}
