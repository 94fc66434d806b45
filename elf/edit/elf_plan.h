/* The plan operation: one transaction over all the edits asked for. */
#ifndef ELF_EDIT_ELF_PLAN_H
#define ELF_EDIT_ELF_PLAN_H

#include "base/format.h"

/* Plans the edits of `req` into the initialised `plan` and seals it.  EXTI_E_UNSUPPORTED for a file
 * that cannot be edited safely.  A file that already is as asked gives an empty plan. */
int exti__elf_plan(struct exti_span file, const struct exti_request *req, struct exti_plan *plan,
                   struct exti_error *err);

#endif
