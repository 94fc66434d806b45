/* Turns the transaction into the plan's patches and tail, checksum included. */
#ifndef PE_EDIT_PE_FINISH_H
#define PE_EDIT_PE_FINISH_H

#include "pe/edit/pe_edit.h"

int exti__pe_finish(struct pe_edit *e, struct exti_error *err);

#endif
