/* Paths as text.  Nothing is looked up.  On Windows either slash separates, and new ones are backslashes.
 * Any thread. */
#ifndef BASE_OS_PATH_H
#define BASE_OS_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The longest path that the system takes, with its NUL. */
#ifdef _WIN32
#define EXTI_PATH_MAX ((size_t)3 * 8192) /* in UTF-8; see struct exti_wide in base/os/win32.h */
#else
#define EXTI_PATH_MAX PATH_MAX
#endif

#define EXTI_FILE_NAME_MAX 255 /* longest file name: NAME_MAX of every file system in use */

/* "dir/name"; exti__free it; NULL when memory is out. */
char *exti__path_join(const char *dir, const char *name);

/* The last separator of folders in `path`, or NULL. */
char *exti__path_last_slash(const char *path);
const char *exti__base_name(const char *path); /* what follows it; `path` if there is none */

bool exti__path_is_absolute(const char *path);
bool exti__path_is_plain_name(const char *name); /* of a file, without a folder; not empty */

/* Whether `path` names something inside the folder `dir`, which ends in no separator.  Neither is
 * normalised. */
bool exti__path_is_below(const char *path, const char *dir);

#endif
