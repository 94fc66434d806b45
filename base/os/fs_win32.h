/* Shared by the fs_*_win32.c files. */
#ifndef BASE_OS_FS_WIN32_H
#define BASE_OS_FS_WIN32_H

#include <windows.h>

#include "base/os/fs_id.h"
#include "base/os/win32.h"

#define EXTI_SHARE_ALL (FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE)

/* fs_id_win32.c */
int exti__win32_open_regular(const char *path, DWORD access, HANDLE *out, struct exti_file_id *id,
                             struct exti_error *err);
bool exti__win32_id(HANDLE h, struct exti_file_id *out);
bool exti__win32_is_folder(const struct exti_wide *w);

/* fs_read_win32.c: reads until `n` bytes are there or the file ends; *got is how many. */
bool exti__win32_read(HANDLE h, uint8_t *p, size_t n, size_t *got);

/* fs_remove_win32.c */

/* 0 or a GetLastError().  Removes the name at once where the file system can (NTFS of Windows 10
 * and later): otherwise the name, and with it the folder, stays until all who have the file open,
 * such as the holder of a lock, close it. */
DWORD exti__win32_delete(const struct exti_wide *w);

/* Gives the file `path` a temporary name beside it.  A loaded library can be renamed, though not
 * removed or overwritten. */
int exti__win32_step_aside(const char *path, const struct exti_wide *w, struct exti_wide *aside,
                           struct exti_error *err);

#endif
