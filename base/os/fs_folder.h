/* Making and listing folders. */
#ifndef BASE_OS_FS_FOLDER_H
#define BASE_OS_FS_FOLDER_H

#include <stdbool.h>

#include <extisolate.h>

/* Makes a folder, which nobody else may write to whatever the umask, unless there is one; its
 * parents must exist. */
int exti__fs_mkdir(const char *path, bool *made, struct exti_error *err);

/* Makes a private folder in the system's folder for temporary files, and gives its real path;
 * exti__free it. */
int exti__fs_mkdtemp(char **out, struct exti_error *err);

/* Has the name `path` survive a power loss: writes the folder that it is in to the disk.  On
 * Windows the file system's log does that. */
int exti__fs_sync_parent(const char *path, struct exti_error *err);

/* Whether the process may make and remove names in the folder, as far as permissions tell. */
bool exti__fs_folder_can_write(const char *path);

/* Calls `each` with every name in `dir` except . and .. until it returns non-zero, and returns
 * that. */
int exti__fs_list(const char *dir, int (*each)(void *user, const char *name), void *user,
                  struct exti_error *err);

#endif
