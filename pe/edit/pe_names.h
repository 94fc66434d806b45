/* Which names change. */
#ifndef PE_EDIT_PE_NAMES_H
#define PE_EDIT_PE_NAMES_H

#include "pe/edit/pe_edit.h"

int exti__pe_edit_names(struct pe_edit *e, struct exti_error *err);

#endif
