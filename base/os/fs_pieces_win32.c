#include "base/os/fs_pieces.h"

#include <errno.h>

#include "base/error.h"
#include "base/os/fs_win32.h"

static HANDLE handle_of(const struct exti_pieces *f)
{
    return (HANDLE)f->handle;
}

int exti__fs_pieces_open(const char *path, struct exti_pieces *out, struct exti_error *err)
{
    struct exti_file_id id;
    HANDLE h;
    int rc = exti__win32_open_regular(path, GENERIC_READ, &h, &id, err);

    if (!rc)
        *out = (struct exti_pieces){path, (intptr_t)h, id};
    return rc;
}

int exti__fs_pieces_read(const struct exti_pieces *f, uint64_t at, void *p, size_t n,
                         struct exti_error *err)
{
    LARGE_INTEGER where;
    size_t got;

    where.QuadPart = (LONGLONG)at;
    if (!SetFilePointerEx(handle_of(f), where, NULL, FILE_BEGIN) ||
        !exti__win32_read(handle_of(f), p, n, &got))
        return exti__fail_last(err, f->path, "cannot read file");
    return got == n ? 0 : exti__fail_io(err, ESTALE, f->path, "changed while it was read");
}

int exti__fs_pieces_check(const struct exti_pieces *f, struct exti_error *err)
{
    struct exti_file_id now;

    if (!exti__win32_id(handle_of(f), &now))
        return exti__fail_last(err, f->path, "cannot look up file");
    if (exti__fs_same_id(&now, &f->id))
        return 0;
    return exti__fail_io(err, ESTALE, f->path, "changed while it was read");
}

void exti__fs_pieces_close(struct exti_pieces *f)
{
    CloseHandle(handle_of(f));
    *f = (struct exti_pieces){.handle = (intptr_t)INVALID_HANDLE_VALUE};
}
