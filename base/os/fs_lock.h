/* Locks between threads and processes. */
#ifndef BASE_OS_FS_LOCK_H
#define BASE_OS_FS_LOCK_H

#include <stdbool.h>

#include <extisolate.h>

struct exti_lock {
#ifdef _WIN32
    void *file; /* a HANDLE, or NULL */
#else
    int fd;
#endif
    bool made; /* the file did not exist before */
};

/* Waits for an exclusive lock on a file, which is created if necessary, but never through a
 * symbolic link.  An existing file need only be readable. */
int exti__fs_lock(const char *path, struct exti_lock *out, struct exti_error *err);
void exti__fs_unlock(struct exti_lock *lock);

/* Whether the lock's file can be written to, not only read. */
bool exti__fs_lock_can_write(const struct exti_lock *lock);

/* Makes `text` the content of the lock's file; `sync`: on the disk too, before this returns. */
int exti__fs_lock_note(const struct exti_lock *lock, const char *text, bool sync,
                       struct exti_error *err);

#endif
