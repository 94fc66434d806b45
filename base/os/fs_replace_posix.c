#include "base/os/fs_replace.h"

#include <errno.h>
#include <fcntl.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_posix.h"

int exti__fs_replace(const char *path, const void *p, size_t n, uint32_t flags,
                     struct exti_error *err)
{
    char *temp;
    int fd, rc = exti__posix_create_temp(path, O_WRONLY, flags, &temp, &fd, err);

    if (rc)
        return rc;
    if (exti__posix_write_all(fd, p, n) != 0)
        rc = exti__fail_io(err, errno, path, "cannot write %zu bytes", n);
    rc = exti__posix_finish_temp(fd, temp, path, n, flags, rc, err);
    exti__free(temp);
    return rc;
}
