/* Removing files and folders. */
#ifndef BASE_OS_FS_REMOVE_H
#define BASE_OS_FS_REMOVE_H

#include <stdbool.h>

#include <extisolate.h>

/* Removes a file; succeeds if there is none.  Fails with os_error EBUSY if the system refuses
 * because a process has it loaded or open (Windows). */
int exti__fs_remove(const char *path, struct exti_error *err);

/* Removes a file if possible.  A file in use that can only be renamed (Windows) gets a temporary
 * name beside it. */
void exti__fs_discard(const char *path);

/* Removes a folder if it is empty. */
int exti__fs_rmdir(const char *path, bool *removed, struct exti_error *err);

#endif
