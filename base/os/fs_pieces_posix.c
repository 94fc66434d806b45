#include "base/os/fs_pieces.h"

#include <errno.h>
#include <unistd.h>

#include "base/error.h"
#include "base/os/fs_posix.h"

int exti__fs_pieces_open(const char *path, struct exti_pieces *out, struct exti_error *err)
{
    struct stat st;
    int fd, rc = exti__posix_open_regular(path, 0, &fd, &st, err);

    if (!rc)
        *out = (struct exti_pieces){path, fd, exti__posix_id_of(&st)};
    return rc;
}

int exti__posix_read_at(int fd, const char *path, uint8_t *p, size_t n, uint64_t at,
                        struct exti_error *err)
{
    while (n) {
        /* Linux reads at most 2 GiB per call; macOS refuses more. */
        const size_t some = n < (size_t)1 << 30 ? n : (size_t)1 << 30;
        const ssize_t got = pread(fd, p, some, (off_t)at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return exti__fail_io(err, errno, path, "cannot read file");
        if (!got)
            return exti__fail_io(err, ESTALE, path, "changed while it was read");
        p += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return 0;
}

int exti__fs_pieces_read(const struct exti_pieces *f, uint64_t at, void *p, size_t n,
                         struct exti_error *err)
{
    return exti__posix_read_at((int)f->handle, f->path, p, n, at, err);
}

int exti__fs_pieces_check(const struct exti_pieces *f, struct exti_error *err)
{
    struct exti_file_id now;
    struct stat st;

    if (fstat((int)f->handle, &st) != 0)
        return exti__fail_io(err, errno, f->path, "cannot look up file");
    now = exti__posix_id_of(&st);
    if (exti__fs_same_id(&now, &f->id))
        return 0;
    return exti__fail_io(err, ESTALE, f->path, "changed while it was read");
}

void exti__fs_pieces_close(struct exti_pieces *f)
{
    close((int)f->handle);
    *f = (struct exti_pieces){.handle = -1};
}
