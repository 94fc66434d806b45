#include "base/os/fs_read.h"

#include "base/mem.h"
#include "base/os/fs_win32.h"

bool exti__win32_read(HANDLE h, uint8_t *p, size_t n, size_t *got)
{
    *got = 0;
    while (*got < n) {
        DWORD chunk = n - *got < (1u << 30) ? (DWORD)(n - *got) : 1u << 30, done;

        if (!ReadFile(h, p + *got, chunk, &done, NULL))
            return false;
        if (!done)
            break;
        *got += done;
    }
    return true;
}

int exti__fs_read(const char *path, size_t max, char **out, size_t *n, struct exti_error *err)
{
    struct exti_file_id id;
    size_t cap, have = 0;
    uint8_t *buf;
    HANDLE h;
    int rc = exti__win32_open_regular(path, GENERIC_READ, &h, &id, err);

    if (rc)
        return rc;
    /* One byte beyond `max` detects a longer file.  If the file has grown since it was opened, its
     * next reader sees the rest. */
    cap = id.size < max ? (size_t)id.size : max + 1;
    buf = exti__alloc(cap + 1);
    if (!buf)
        rc = exti__fail_nomem(err);
    else if (!exti__win32_read(h, buf, cap, &have))
        rc = exti__fail_last(err, path, "cannot read file");
    else if (have > max)
        rc = exti__fail(err, EXTI_E_FORMAT, max, "file has more than %zu bytes", max);
    CloseHandle(h);
    if (rc) {
        exti__error_file(err, path);
        exti__free(buf);
        return rc;
    }
    buf[have] = 0;
    *out = (char *)buf;
    *n = have;
    return 0;
}

/* Everything is trusted: see fs_owner_win32.c. */
int exti__fs_read_trusted(const char *path, size_t max, char **out, size_t *n,
                          struct exti_error *err)
{
    return exti__fs_read(path, max, out, n, err);
}
