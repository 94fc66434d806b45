/* Which strings can be overwritten in place. */
#ifndef PE_EDIT_PE_SLOT_H
#define PE_EDIT_PE_SLOT_H

#include <stdbool.h>

#include "pe/edit/pe_edit.h"

/* Fills e->slots from e->renames.  EXTI_E_UNSUPPORTED for an absurd number of symbols. */
int exti__pe_classify_slots(struct pe_edit *e, struct exti_error *err);
/* Whether the new string goes where the old one is. */
bool exti__pe_in_place(const struct pe_edit *e, const struct pe_rename *r);

#endif
