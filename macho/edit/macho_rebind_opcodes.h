/* Rebinding LC_DYLD_INFO's streams. */
#ifndef MACHO_EDIT_MACHO_REBIND_OPCODES_H
#define MACHO_EDIT_MACHO_REBIND_OPCODES_H

#include "macho/edit/macho_targets.h"

int exti__macho_rebind_opcodes(struct macho_rebind *r, struct exti_error *err);

#endif
