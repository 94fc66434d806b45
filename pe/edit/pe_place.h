/* Places the new names (the blob). */
#ifndef PE_EDIT_PE_PLACE_H
#define PE_EDIT_PE_PLACE_H

#include "pe/edit/pe_edit.h"

/* Overwrites strings in place, finds room for the rest and points their fields at it.
 * EXTI_E_NOSPACE without room. */
int exti__pe_place(struct pe_edit *e, struct exti_error *err);

#endif
