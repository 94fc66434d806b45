/* Which strings can be overwritten where they are. */
#ifndef PE_EDIT_PE_SLOT_H
#define PE_EDIT_PE_SLOT_H

#include <stdbool.h>

#include "pe/edit/pe_edit.h"

int exti__pe_classify_slots(struct pe_edit *e, struct exti_error *err);
bool exti__pe_in_place(const struct pe_edit *e, const struct pe_rename *r);

#endif
