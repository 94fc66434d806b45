#define _GNU_SOURCE /* O_PATH */
#include "loader/track/home.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

bool exti__is_place(int fd)
{
    const int flags = fcntl(fd, F_GETFL);

    return flags >= 0 && (flags & O_PATH);
}

bool exti__home_note(struct exti_home *out)
{
    struct stat st;

    out->fd = open(".", EXTI_ONLY_FOLDER);
    if (out->fd < 0)
        return false;
    if (fstat(out->fd, &st)) {
        close(out->fd);
        return false;
    }
    out->device = st.st_dev;
    out->inode = st.st_ino;
    return true;
}

void exti__home_return(const struct exti_home *home)
{
    struct stat st;

    if (exti__is_place(home->fd) && fstat(home->fd, &st) == 0 && st.st_dev == home->device &&
        st.st_ino == home->inode) {
        (void)!fchdir(home->fd);
        close(home->fd);
    }
    umask(home->mask);
}
