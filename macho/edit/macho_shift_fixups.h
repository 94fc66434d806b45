/* Shifting rebase targets and chain starts. */
#ifndef MACHO_EDIT_MACHO_SHIFT_FIXUPS_H
#define MACHO_EDIT_MACHO_SHIFT_FIXUPS_H

#include "macho/edit/macho_build.h"

int exti__macho_shift_fixups(struct macho_build *b, struct exti_error *err);

#endif
