/* Paths as text; nothing here looks at files.  On Windows both slashes separate names, and new
 * separators are backslashes.  Any thread.
 *
 * base/os/ hides the operating system: files and folders (fs_*.h), paths, hashing, boot and random
 * numbers, with one source per system and the same contract on each.  It uses base/.  The loader
 * calls all of it, the formats only paths and hashing. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* The longest path that the system takes, with its NUL. */
#ifdef _WIN32
#define EXTI_PATH_MAX ((size_t)3 * 8192) /* in UTF-8; see struct exti_wide in base/os/win32.h */
#else
#define EXTI_PATH_MAX PATH_MAX
#endif

#define EXTI_FILE_NAME_MAX 255 /* the longest file name: NAME_MAX of every file system in use */

/* Gives "dir/name"; exti__free it; NULL if memory is out. */
char *exti__path_join(const char *dir, const char *name);

/* Gives the last separator in `path`, or NULL. */
char *exti__path_last_slash(const char *path);
const char *exti__base_name(const char *path); /* the part behind it, or all of `path` */

bool exti__path_is_absolute(const char *path);
bool exti__path_is_plain_name(const char *name); /* a non-empty file name without a folder */

/* Whether `path` lies inside the folder `dir`, compared as text.  `dir` must not end in a
 * separator. */
bool exti__path_is_below(const char *path, const char *dir);

#endif
