/* Exports: the loader's rules, and the comparison with the original. */
#ifndef PE_CHECK_PE_CHECK_EXPORT_H
#define PE_CHECK_PE_CHECK_EXPORT_H

#include "pe/check/pe_check_state.h"

int exti__pe_rule_exports(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_step_id(struct pe_check *c, struct exti_error *err);
int exti__pe_step_exports(struct pe_check *c, struct exti_error *err);
int exti__pe_step_forwarders(struct pe_check *c, struct exti_error *err);

#endif
