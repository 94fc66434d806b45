#include "loader/rewrite/bind_set.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/format.h"
#include "base/mem.h"
#include "base/os/fs_map.h"
#include "loader/image/formats.h"
#include "loader/image/install_name.h"

/* More re-exported libraries than any real library has; also ends circles of different paths. */
#define MOST_FILES 16

static bool has_path(const struct exti_bind_set *set, char **paths, const char *path)
{
    for (size_t i = 0; i < set->count; i++)
        if (strcmp(paths[i], path) == 0)
            return true;
    return false;
}

/* Maps `path` and takes ownership of it.  Only the first file must exist. */
static int bind_set_add(struct exti_bind_set *set, char **paths, char *path, struct exti_error *err)
{
    struct exti_mapping *m = &set->files[set->count];
    struct exti_error e = {0};
    int rc;

    if (has_path(set, paths, path) || set->count == MOST_FILES) {
        exti__free(path);
        return 0;
    }
    rc = exti__fs_map_parts(path, &exti__formats_unread, m, NULL, &e);
    if (rc) {
        exti__free(path);
        if (set->count && rc == EXTI_E_IO && e.os_error == ENOENT)
            return 0;
        if (err)
            *err = e;
        return rc;
    }
    set->spans[set->count] = exti__span(m->p, m->n);
    paths[set->count++] = path;
    return 0;
}

static int add_reexport(struct exti_bind_set *set, char **paths, const char *from,
                        const struct exti_image *im, const char *name, struct exti_error *err)
{
    size_t before = set->count;

    for (size_t i = 0; i < exti__install_name_tries(im, name) && set->count == before; i++) {
        char *path;
        int rc = exti__install_name_file(from, im, name, i, &path, err);

        if (!rc && path)
            rc = bind_set_add(set, paths, path, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int add_reexports(struct exti_bind_set *set, char **paths, size_t of, struct exti_error *err)
{
    struct exti_image im = {0};
    const struct exti_format_ops *ops;
    int rc = exti__format_of(set->spans[of], &ops, err);

    if (!rc)
        rc = ops->read(set->spans[of], &im, err);
    for (size_t i = 0; i < im.info.needed_count && !rc; i++)
        if (im.needed[i].flags & EXTI_NEED_REEXPORT)
            rc = add_reexport(set, paths, paths[of], &im, im.needed[i].name, err);
    exti__image_clear(&im);
    if (rc)
        exti__error_file(err, paths[of]);
    return rc;
}

int exti__bind_set_open(struct exti_bind_set *out, const char *file, struct exti_error *err)
{
    struct exti_bind_set set = {0};
    char *paths[MOST_FILES] = {NULL}, *first;
    int rc = 0;

    *out = set;
    if (!file)
        return 0;
    set.files = exti__calloc(MOST_FILES, sizeof *set.files);
    set.spans = exti__calloc(MOST_FILES, sizeof *set.spans);
    first = exti__strdup(file);
    if (!set.files || !set.spans || !first) {
        exti__free(first);
        exti__bind_set_close(&set);
        return exti__fail_nomem(err);
    }
    rc = bind_set_add(&set, paths, first, err);
    for (size_t i = 0; i < set.count && !rc; i++)
        rc = add_reexports(&set, paths, i, err);
    for (size_t i = 0; i < set.count; i++)
        exti__free(paths[i]);
    if (rc)
        exti__bind_set_close(&set);
    *out = set;
    return rc;
}

void exti__bind_set_close(struct exti_bind_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        exti__fs_unmap(&set->files[i]);
    exti__free(set->files);
    exti__free(set->spans);
    *set = (struct exti_bind_set){0};
}
