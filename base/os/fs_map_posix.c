#include "base/os/fs_map.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_posix.h"

static int check_mappable_size(const struct stat *st, const char *path, struct exti_error *err)
{
    uint64_t size = (uint64_t)st->st_size;
    int rc = 0;

    if (!size)
        rc = exti__fail(err, EXTI_E_FORMAT, 0, "file is empty");
    else if (size > EXTI_MAX_INPUT || size > SIZE_MAX / 2)
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                        "file has %" PRIu64 " bytes, the limit is %" PRIu64, size, EXTI_MAX_INPUT);
    if (rc)
        exti__error_file(err, path);
    return rc;
}

static int open_mappable(const char *path, int *out, struct stat *st, struct exti_error *err)
{
    int rc = exti__posix_open_regular(path, out, st, err);

    if (rc)
        return rc;
    rc = check_mappable_size(st, path, err);
    if (rc)
        close(*out);
    return rc;
}

/* Files up to this size are read.  That costs less than mapping them: page faults and, in a process
 * with threads, the interrupts that tell other processors of the unmapping. */
#define READ_LIMIT ((size_t)256 << 10)

static int read_exactly(int fd, const char *path, uint8_t *p, size_t n, struct exti_error *err)
{
    while (n) {
        ssize_t got = read(fd, p, n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return exti__fail_io(err, errno, path, "cannot read file");
        if (!got)
            return exti__fail_io(err, ESTALE, path, "changed while it was read");
        p += got;
        n -= (size_t)got;
    }
    return 0;
}

/* Reads the file and adds `room` zeroed bytes. */
static int read_image(int fd, const char *path, size_t size, size_t room, struct exti_mapping *out,
                      struct exti_error *err)
{
    uint8_t *p = exti__alloc(size + room);
    int rc;

    if (!p)
        return exti__fail_nomem(err);
    rc = read_exactly(fd, path, p, size, err);
    if (rc) {
        exti__free(p);
        return rc;
    }
    memset(p + size, 0, room);
    *out = (struct exti_mapping){p, size, 0};
    return 0;
}

/* A mapping follows its file.  If the file is replaced by rename, as we and package managers do,
 * the mapping stays whole.  If the file is written in place, the mapping can show old and new bytes
 * at once; the caller detects that by comparing exti__fs_id before and after.  If the file is
 * truncated in place, the first access past its new end raises SIGBUS.  Nothing here protects
 * against that: a library cannot own the process's signal handler, and reading the bytes instead
 * would cost every caller a second copy. */
static int map_file(int fd, const char *path, size_t size, struct exti_mapping *out,
                    struct exti_error *err)
{
    void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

    if (p == MAP_FAILED)
        return exti__fail_io(err, errno, path, "cannot map file");
    *out = (struct exti_mapping){p, size, size};
    return 0;
}

int exti__fs_map(const char *path, struct exti_mapping *out, struct exti_file_id *id,
                 struct exti_error *err)
{
    struct stat st;
    int fd, rc = open_mappable(path, &fd, &st, err);

    if (rc)
        return rc;
    if ((size_t)st.st_size <= READ_LIMIT)
        rc = read_image(fd, path, (size_t)st.st_size, 0, out, err);
    else
        rc = map_file(fd, path, (size_t)st.st_size, out, err);
    close(fd);
    if (rc == 0 && id)
        *id = exti__posix_id_of(&st);
    return rc;
}

/* Gives the size of a mapping for `size` bytes of file and `room` more, in whole pages. */
static int mapping_size(uint64_t size, uint64_t room, size_t *out, struct exti_error *err)
{
    uint64_t total;

    if (!exti__add(size, room, &total) ||
        !exti__align(total, (uint64_t)sysconf(_SC_PAGESIZE), &total) || total > SIZE_MAX / 2)
        return exti__fail(err, EXTI_E_NOMEM, EXTI_NO_OFFSET,
                          "%" PRIu64 " bytes and %" PRIu64 " more do not fit in memory", size,
                          room);
    *out = (size_t)total;
    return 0;
}

/* The image shares the file's cached pages until they are written to, so it costs memory only for
 * the pages that the edits touch. */
static int map_image(int fd, const struct stat *st, const char *path, uint64_t room,
                     struct exti_mapping *out, struct exti_error *err)
{
    size_t size = (size_t)st->st_size, page = (size_t)sysconf(_SC_PAGESIZE), mapped = 0;
    uint8_t *p;
    int rc = mapping_size(size, room, &mapped, err);

    if (rc)
        return rc;
    if (mapped <= READ_LIMIT)
        return read_image(fd, path, size, (size_t)room, out, err);
    p = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return exti__fail_io(err, errno, path, "cannot reserve %zu bytes of memory", mapped);
    if (mmap(p, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED) {
        rc = exti__fail_io(err, errno, path, "cannot map file");
        munmap(p, mapped);
        return rc;
    }
    /* The last page's bytes past the end of the file are zeros only if no one has written to them
     * through a shared mapping. */
    if (room && size % page)
        memset(p + size, 0, page - size % page);
    *out = (struct exti_mapping){p, size, mapped};
    return 0;
}

int exti__fs_map_copy(const char *path, const struct exti_file_id *id, uint64_t room,
                      struct exti_mapping *out, struct exti_error *err)
{
    struct exti_file_id now;
    struct stat st;
    int fd, rc = open_mappable(path, &fd, &st, err);

    if (rc)
        return rc;
    now = exti__posix_id_of(&st);
    if (exti__fs_same_id(&now, id))
        rc = map_image(fd, &st, path, room, out, err);
    else
        rc = exti__fail_io(err, ESTALE, path, "changed while it was read");
    if (rc)
        exti__error_file(err, path);
    close(fd);
    return rc;
}

void exti__fs_unmap(struct exti_mapping *m)
{
    if (m->mapped)
        munmap(m->p, m->mapped);
    else
        exti__free(m->p);
    *m = (struct exti_mapping){0};
}
