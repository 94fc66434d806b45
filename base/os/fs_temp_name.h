/* Names of unfinished files. */
#ifndef BASE_OS_FS_TEMP_NAME_H
#define BASE_OS_FS_TEMP_NAME_H

#include <stdbool.h>
#include <stdint.h>

#define EXTI_TEMP_RANDOM 16 /* bytes; written as hex */

/* Gives "dir/.exti-<hex>" for "dir/name"; exti__free it; NULL if memory is out.  The random part
 * keeps others from putting a file there beforehand, and two writers from colliding. */
char *exti__fs_temp_path(const char *path, const uint8_t random[EXTI_TEMP_RANDOM]);

/* Whether `name` is such a name, as left behind by a process killed during exti__fs_replace. */
bool exti__fs_is_temporary(const char *name);

#endif
