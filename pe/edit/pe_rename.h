/* DLL names and their replacements. */
#ifndef PE_EDIT_PE_RENAME_H
#define PE_EDIT_PE_RENAME_H

#include <stdbool.h>
#include <stddef.h>

#include "pe/edit/pe_edit.h"

/* Appends to e->renames.  EXTI_E_NOMEM. */
int exti__pe_add_rename(struct pe_edit *e, struct pe_rename r, struct exti_error *err);
/* What the edits make of the DLL name `name` of `n` bytes, which need no NUL; the same pointer if
 * no edit changes it.  Marks the edits that apply, or have been made already, in e->seen. */
const char *exti__pe_new_name(struct pe_edit *e, const char *name, size_t n);
/* Whether the loader takes two names for one DLL: letter case and a final ".dll" do not count. */
bool exti__pe_same_dll(const char *a, size_t a_size, const char *b, size_t b_size);

#endif
