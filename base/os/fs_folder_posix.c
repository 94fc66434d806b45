#include "base/os/fs_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/fs.h>
#include <sys/ioctl.h>
#endif

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

bool exti__fs_folder_can_write(const char *path)
{
    return faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

/* ---- private folders ---- */

#define TEMPLATE "exti-XXXXXX"

/* Has the file system put new folders in `path` far from it and from each other.  False if it
 * cannot. */
static bool spread_folders(const char *path)
{
#ifdef FS_TOPDIR_FL
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int flags = 0;
    bool done = fd >= 0 && ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0;

    flags |= FS_TOPDIR_FL;
    done = done && ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0;
    if (fd >= 0)
        close(fd);
    return done;
#else
    (void)path;
    return false;
#endif
}

/* Puts a folder that was made in `from` into the place of the empty folder `to`. */
static int replace_folder(const char *from, const char *to)
{
    char *inner = exti__path_join(from, strrchr(to, '/') + 1);
    int rc = -1;

    if (inner && mkdir(inner, 0700) == 0) {
        rc = rename(inner, to);
        if (rc)
            rmdir(inner);
    }
    exti__free(inner);
    return rc;
}

/* Makes `path`, whose end is replaced.  It is made in another private folder and moved, where the
 * file system spreads folders.  For ext4 puts files beside their folder, and for some minutes looks
 * at each inode there that was freed before it finds one for a new file (recently_deleted in
 * fs/ext4/ialloc.c): contexts that come after many others would open slower and slower. */
static int make_private(char *path)
{
    char *apart;
    bool moved = false;

    if (!mkdtemp(path))
        return -1;
    apart = spread_folders(path) ? exti__strdup(path) : NULL;
    if (apart)
        memcpy(strrchr(apart, '/') + 1, TEMPLATE, sizeof TEMPLATE);
    if (apart && mkdtemp(apart)) {
        moved = replace_folder(path, apart) == 0;
        rmdir(moved ? path : apart);
    }
    if (moved)
        memcpy(path, apart, strlen(path));
    exti__free(apart);
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
    path = exti__path_join(base, TEMPLATE);
    if (!path)
        return exti__fail_nomem(err);
    if (make_private(path) != 0) {
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
