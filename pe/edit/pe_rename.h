/* One name and its replacement. */
#ifndef PE_EDIT_PE_RENAME_H
#define PE_EDIT_PE_RENAME_H

#include <stdbool.h>
#include <stddef.h>

#include "pe/edit/pe_edit.h"

int exti__pe_add_rename(struct pe_edit *e, struct pe_rename r, struct exti_error *err);
/* The name that replaces that of a DLL; the same pointer if none does.  `n` is its length. */
const char *exti__pe_new_name(struct pe_edit *e, const char *name, size_t n);
/* Whether two names mean one DLL: in any case, ".dll" is understood. */
bool exti__pe_same_dll(const char *a, size_t a_size, const char *b, size_t b_size);

#endif
