/* Random bytes from the system. */
#ifndef BASE_OS_FS_RANDOM_H
#define BASE_OS_FS_RANDOM_H

#include <stddef.h>

#include <extisolate.h>

/* Gives `n` <= 256 unpredictable bytes.  `use` is what an error message says they were for. */
int exti__fs_random(void *p, size_t n, const char *use, struct exti_error *err);

#endif
