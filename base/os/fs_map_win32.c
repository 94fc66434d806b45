#include "base/os/fs_map.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/os/fs_win32.h"

static int open_mappable(const char *path, HANDLE *out, struct exti_file_id *id,
                         struct exti_error *err)
{
    int rc = exti__win32_open_regular(path, GENERIC_READ, out, id, err);

    if (rc)
        return rc;
    if (!id->size)
        rc = exti__fail(err, EXTI_E_FORMAT, 0, "file is empty");
    else if (id->size > EXTI_MAX_INPUT || id->size > SIZE_MAX / 2)
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                        "file has %" PRIu64 " bytes, the limit is %" PRIu64, id->size,
                        EXTI_MAX_INPUT);
    if (rc) {
        exti__error_file(err, path);
        CloseHandle(*out);
    }
    return rc;
}

/* Windows does not let anyone truncate a mapped file, so an access faults only if the network or
 * the disk fails.  A write into the file shows in the mapping, and gives the file another
 * identity. */
int exti__fs_map(const char *path, struct exti_mapping *out, struct exti_file_id *id,
                 struct exti_error *err)
{
    struct exti_file_id now;
    HANDLE h, section;
    void *p = NULL;
    int rc = open_mappable(path, &h, &now, err);

    if (rc)
        return rc;
    section = CreateFileMappingW(h, NULL, PAGE_READONLY, 0, 0, NULL);
    if (section)
        p = MapViewOfFile(section, FILE_MAP_READ, 0, 0, (size_t)now.size);
    if (!p)
        rc = exti__fail_last(err, path, "cannot map file");
    if (section)
        CloseHandle(section);
    CloseHandle(h);
    if (rc)
        return rc;
    *out = (struct exti_mapping){.p = p, .n = (size_t)now.size};
    if (id)
        *id = now;
    return 0;
}

/* Code that a mapping has costs nothing while no one looks at it. */
int exti__fs_map_parts(const char *path, const struct exti_unread_ops *unread,
                       struct exti_mapping *out, struct exti_file_id *id, struct exti_error *err)
{
    (void)unread;
    return exti__fs_map(path, out, id, err);
}

int exti__fs_map_head(const char *path, size_t max, struct exti_mapping *out,
                      struct exti_error *err)
{
    int rc = exti__fs_map(path, out, NULL, err);

    if (!rc && out->n > max)
        out->n = max;
    return rc;
}

/* No other memory can follow a view of a file, so this is no view. */
int exti__fs_map_image(const struct exti_mapping *source, uint64_t room, struct exti_mapping *out,
                       struct exti_error *err)
{
    uint64_t total;
    uint8_t *p;

    if (!exti__add(source->n, room, &total) || total > SIZE_MAX / 2)
        return exti__fail(err, EXTI_E_NOMEM, EXTI_NO_OFFSET,
                          "%zu bytes and %" PRIu64 " more do not fit in memory", source->n, room);
    p = VirtualAlloc(NULL, (size_t)total, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (!p)
        return exti__fail_system(err, GetLastError(), NULL,
                                 "cannot reserve %" PRIu64 " bytes of memory", total);
    memcpy(p, source->p, source->n);
    *out = (struct exti_mapping){.p = p, .n = source->n, .mapped = (size_t)total};
    return 0;
}

/* `mapped` is 0 for a view of a file. */
void exti__fs_unmap(struct exti_mapping *m)
{
    if (m->p && m->mapped)
        VirtualFree(m->p, 0, MEM_RELEASE);
    else if (m->p)
        UnmapViewOfFile(m->p);
    *m = (struct exti_mapping){0};
}
