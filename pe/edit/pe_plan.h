/* Planning a copy: the `plan` of struct exti_format_ops. */
#ifndef PE_EDIT_PE_PLAN_H
#define PE_EDIT_PE_PLAN_H

#include "base/format.h"

/* EXTI_E_ARG for names that no DLL can have or that nothing imports, EXTI_E_UNSUPPORTED for files
 * and edits that cannot be handled safely, EXTI_E_NOSPACE without room for the new names. */
int exti__pe_plan(struct exti_span file, const struct exti_request *req, struct exti_plan *plan,
                  struct exti_error *err);

#endif
