/* The system's start. */
#ifndef BASE_OS_FS_BOOT_H
#define BASE_OS_FS_BOOT_H

#include <stddef.h>

/* Names the current boot; "" if unknown.  The system's file cache has lived since then, so no power
 * loss can have torn a file that was written during the same boot.  EXTI_E_ARG if the name does not
 * fit. */
int exti__fs_boot(char *out, size_t cap);

#endif
