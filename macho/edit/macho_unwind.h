/* Shifting __unwind_info. */
#ifndef MACHO_EDIT_MACHO_UNWIND_H
#define MACHO_EDIT_MACHO_UNWIND_H

#include "macho/edit/macho_build.h"

/* Adds `shift` to every offset from the image's start in a __unwind_info section of `n` bytes that
 * lies at `base` in the file. */
int exti__macho_unwind_shift(uint8_t *p, size_t n, uint64_t base, uint64_t shift,
                             struct exti_error *err);

#endif
