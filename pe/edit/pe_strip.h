/* What a changed copy cannot keep. */
#ifndef PE_EDIT_PE_STRIP_H
#define PE_EDIT_PE_STRIP_H

#include "pe/edit/pe_edit.h"

int exti__pe_refuse(const struct pe_edit *e, struct exti_error *err);
int exti__pe_strip(struct pe_edit *e, struct exti_error *err);

#endif
