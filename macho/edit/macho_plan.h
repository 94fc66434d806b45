/* The format's plan operation. */
#ifndef MACHO_EDIT_MACHO_PLAN_H
#define MACHO_EDIT_MACHO_PLAN_H

#include "base/format.h"

/* struct exti_format_ops.plan. */
int exti__macho_plan(struct exti_span file, const struct exti_request *req, struct exti_plan *plan,
                     struct exti_error *err);

#endif
