/* LEB128 numbers and strings at a cursor. */
#ifndef MACHO_READ_MACHO_LEB_H
#define MACHO_READ_MACHO_LEB_H

#include <stdint.h>

#include "base/span.h"

/* A number of more than 64 bits fails the cursor, as a read past the end does. */
uint64_t exti__macho_uleb(struct exti_cur *c);
int64_t exti__macho_sleb(struct exti_cur *c);

/* The NUL-terminated string at the cursor, which moves past it.  Without a NUL, the cursor fails
 * and the result is "". */
const char *exti__macho_cur_cstr(struct exti_cur *c);

#endif
