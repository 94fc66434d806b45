/* Which names change, and into what. */
#ifndef PE_EDIT_PE_NAMES_H
#define PE_EDIT_PE_NAMES_H

#include "pe/edit/pe_edit.h"

/* Checks the options and fills e->exports, e->seen, e->renames and e->forwarders.  EXTI_E_ARG if a
 * library to replace is not imported. */
int exti__pe_edit_names(struct pe_edit *e, struct exti_error *err);

#endif
