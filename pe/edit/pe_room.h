/* A section of its own for the blob, or more of the last one. */
#ifndef PE_EDIT_PE_ROOM_H
#define PE_EDIT_PE_ROOM_H

#include "pe/edit/pe_edit.h"

int exti__pe_append(struct pe_edit *e, struct exti_error *err);

#endif
