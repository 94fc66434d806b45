#include "base/os/fs_remove.h"

#include <errno.h>
#include <unistd.h>

#include "base/error.h"

int exti__fs_remove(const char *path, struct exti_error *err)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    return exti__fail_io(err, errno, path, "cannot remove file");
}

void exti__fs_discard(const char *path)
{
    exti__fs_remove(path, NULL);
}

int exti__fs_rmdir(const char *path, bool *removed, struct exti_error *err)
{
    bool done = rmdir(path) == 0;

    if (!done && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT)
        return exti__fail_io(err, errno, path, "cannot remove folder");
    *removed = done;
    return 0;
}
