/* Where a thread is outside of all contexts, so that it can go back.  Linux. */
#ifndef LOADER_TRACK_HOME_H
#define LOADER_TRACK_HOME_H

#include <stdbool.h>
#include <sys/types.h>

/* open(2): for a descriptor that stands for a directory only. */
#define EXTI_ONLY_FOLDER (O_PATH | O_DIRECTORY | O_CLOEXEC)

struct exti_home {
    int fd;
    dev_t device;
    ino_t inode;
    mode_t mask; /* for umask(2); the caller's to set */
};

/* Whether the number stands for a directory only.  Programs close whatever numbers there are: one
 * that does not is somebody else's. */
bool exti__is_place(int fd);

/* Notes the current directory; false and errno if that cannot be opened. */
bool exti__home_note(struct exti_home *out);

/* Goes back and closes it.  If the number is another's by now, the thread stays where it is. */
void exti__home_return(const struct exti_home *home);

#endif
