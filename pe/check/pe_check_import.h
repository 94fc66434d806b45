/* Imports: the loader's rules, and the comparison with the original. */
#ifndef PE_CHECK_PE_CHECK_IMPORT_H
#define PE_CHECK_PE_CHECK_IMPORT_H

#include "pe/check/pe_check_state.h"

int exti__pe_rule_imports(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_delayed(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_step_imports(struct pe_check *c, struct exti_error *err);
int exti__pe_step_bound(struct pe_check *c, struct exti_error *err);
int exti__pe_step_provided(struct pe_check *c, struct exti_error *err);

#endif
