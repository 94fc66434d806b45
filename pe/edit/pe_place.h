/* Where the blob goes. */
#ifndef PE_EDIT_PE_PLACE_H
#define PE_EDIT_PE_PLACE_H

#include "pe/edit/pe_edit.h"

int exti__pe_place(struct pe_edit *e, struct exti_error *err);

#endif
