/* Binding the references of a copy to their new targets. */
#ifndef MACHO_EDIT_MACHO_REBIND_H
#define MACHO_EDIT_MACHO_REBIND_H

#include "macho/edit/macho_build.h"

/* Binds flat and main program references to b->bind_ordinal where one of b->bind exports the name,
 * keeps the file's weak definitions to itself (EXTI_RW_CLEAR_UNIQUE), renumbers ordinals where
 * libraries were removed, and updates the symbol table to match. */
int exti__macho_rebind(struct macho_build *b, struct exti_error *err);

#endif
