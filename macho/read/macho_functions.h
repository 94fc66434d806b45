/* The functions of a mapped image that dyld runs when it loads and unloads the image, and those
 * that a copy withholds from dyld. */
#ifndef MACHO_READ_MACHO_FUNCTIONS_H
#define MACHO_READ_MACHO_FUNCTIONS_H

#include <stdbool.h>

#include "base/span.h"

struct exti_macho_function {
    uintptr_t address;
    bool is_terminator, is_withheld;
};

/* Calls `each` for every initialiser in dyld's order, then for every terminator, until it returns
 * non-zero.  `image` starts with the header that dyld uses, and lies as dyld has mapped and fixed
 * it up.  Stops where it is malformed. */
void exti__macho_functions(struct exti_span image,
                           int (*each)(void *user, const struct exti_macho_function *f),
                           void *user);

#endif
