/* What a changed copy cannot keep: signature, bound imports, load flags. */
#ifndef PE_EDIT_PE_STRIP_H
#define PE_EDIT_PE_STRIP_H

#include "pe/edit/pe_edit.h"

/* EXTI_E_UNSUPPORTED for files of which no copy can be loaded (exti__pe_unfit). */
int exti__pe_refuse(const struct pe_edit *e, struct exti_error *err);
/* Clears what a copy cannot keep and sets e->keep. */
int exti__pe_strip(struct pe_edit *e, struct exti_error *err);

#endif
