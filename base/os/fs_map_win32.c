#include "base/os/fs_map.h"

#include <errno.h>
#include <inttypes.h>

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
 * the disk fails. */
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

/* Reads the file, because no other memory can follow a view of a file. */
static int read_image(HANDLE h, uint64_t size, uint64_t room, const char *path,
                      struct exti_mapping *out, struct exti_error *err)
{
    uint64_t total;
    uint8_t *p;
    size_t got;
    int rc = 0;

    if (!exti__add(size, room, &total) || total > SIZE_MAX / 2)
        return exti__fail(err, EXTI_E_NOMEM, EXTI_NO_OFFSET,
                          "%" PRIu64 " bytes and %" PRIu64 " more do not fit in memory", size,
                          room);
    p = VirtualAlloc(NULL, (size_t)total, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (!p)
        return exti__fail_system(err, GetLastError(), path,
                                 "cannot reserve %" PRIu64 " bytes of memory", total);
    if (!exti__win32_read(h, p, (size_t)size, &got))
        rc = exti__fail_last(err, path, "cannot read file");
    else if (got < size)
        rc = exti__fail_io(err, ESTALE, path, "changed while it was read");
    if (rc)
        VirtualFree(p, 0, MEM_RELEASE);
    else
        *out = (struct exti_mapping){p, (size_t)size, (size_t)total};
    return rc;
}

int exti__fs_map_copy(const char *path, const struct exti_file_id *id, uint64_t room,
                      struct exti_mapping *out, struct exti_error *err)
{
    struct exti_file_id now;
    HANDLE h;
    int rc = open_mappable(path, &h, &now, err);

    if (rc)
        return rc;
    if (exti__fs_same_id(&now, id))
        rc = read_image(h, now.size, room, path, out, err);
    else
        rc = exti__fail_io(err, ESTALE, path, "changed while it was read");
    if (rc)
        exti__error_file(err, path);
    CloseHandle(h);
    return rc;
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
