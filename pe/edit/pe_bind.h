/* Checks that imports find their symbols in the library that replaces theirs (opts->bind_file). */
#ifndef PE_EDIT_PE_BIND_H
#define PE_EDIT_PE_BIND_H

#include "pe/edit/pe_edit.h"

/* EXTI_E_UNSUPPORTED for a symbol that the library does not export, or an import by ordinal from
 * another library; errors in the library itself name its file. */
int exti__pe_check_bind(struct pe_edit *e, struct exti_error *err);

#endif
