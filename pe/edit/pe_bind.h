/* Imports that change their library must find all their symbols there. */
#ifndef PE_EDIT_PE_BIND_H
#define PE_EDIT_PE_BIND_H

#include "pe/edit/pe_edit.h"

int exti__pe_check_bind(struct pe_edit *e, struct exti_error *err);

#endif
