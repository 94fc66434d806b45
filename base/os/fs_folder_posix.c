#include "base/os/fs_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/path.h"

int exti__fs_mkdir(const char *path, bool *made, struct exti_error *err)
{
    struct stat st;

    if (mkdir(path, 0755) == 0) {
        *made = true;
        return 0;
    }
    if (errno != EEXIST)
        return exti__fail_io(err, errno, path, "cannot make folder");
    if (stat(path, &st) != 0)
        return exti__fail_io(err, errno, path, "cannot look up folder");
    if (!S_ISDIR(st.st_mode))
        return exti__fail_io(err, ENOTDIR, path, "cannot make folder: a file has this name");
    *made = false;
    return 0;
}

int exti__fs_mkdtemp(char **out, struct exti_error *err)
{
    const char *base = getenv("TMPDIR");
    char *path;
    int rc;

    /* With a relative $TMPDIR the folder's name would depend on the working directory. */
    if (!base || base[0] != '/')
        base = "/tmp";
    path = exti__path_join(base, "exti-XXXXXX");
    if (!path)
        return exti__fail_nomem(err);
    if (!mkdtemp(path)) {
        rc = exti__fail_io(err, errno, base, "cannot make a temporary folder here");
        exti__free(path);
        return rc;
    }
    rc = exti__fs_realpath(path, out, err);
    if (rc)
        rmdir(path);
    exti__free(path);
    return rc;
}

int exti__fs_sync_parent(const char *path, struct exti_error *err)
{
    const char *slash = strrchr(path, '/');
    char *dir;
    int fd, rc = 0;

    dir = exti__strdup(slash ? path : ".");
    if (!dir)
        return exti__fail_nomem(err);
    if (slash)
        dir[slash == path ? 1 : slash - path] = 0;
    fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* EINVAL: the file system cannot sync a folder, and so does not need it. */
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        rc = exti__fail_io(err, errno, dir, "cannot sync folder");
    if (fd >= 0)
        close(fd);
    exti__free(dir);
    return rc;
}

int exti__fs_list(const char *dir, int (*each)(void *user, const char *name), void *user,
                  struct exti_error *err)
{
    DIR *d = opendir(dir);
    struct dirent *entry;
    int rc = 0;

    if (!d)
        return exti__fail_io(err, errno, dir, "cannot open folder");
    for (errno = 0; !rc && (entry = readdir(d)) != NULL; errno = 0) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            rc = each(user, entry->d_name);
    }
    if (!rc && errno)
        rc = exti__fail_io(err, errno, dir, "cannot read folder");
    closedir(d);
    return rc;
}
