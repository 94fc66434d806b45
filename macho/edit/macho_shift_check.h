/* Files that can be shifted. */
#ifndef MACHO_EDIT_MACHO_SHIFT_CHECK_H
#define MACHO_EDIT_MACHO_SHIFT_CHECK_H

#include "macho/edit/macho_build.h"

/* EXTI_E_UNSUPPORTED for a file with anything in it that is not known to survive a page shift. */
int exti__macho_shift_check(const struct macho_build *b, struct exti_error *err);

#endif
