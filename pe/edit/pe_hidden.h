/* Refuses delay imports that no directory lists. */
#ifndef PE_EDIT_PE_HIDDEN_H
#define PE_EDIT_PE_HIDDEN_H

#include "pe/edit/pe_edit.h"

/* EXTI_E_UNSUPPORTED if an unlisted delay import names a library that changes. */
int exti__pe_refuse_hidden(const struct pe_edit *e, struct exti_error *err);

#endif
