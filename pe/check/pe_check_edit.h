/* Headers, directories and section table: the comparison with the original. */
#ifndef PE_CHECK_PE_CHECK_EDIT_H
#define PE_CHECK_PE_CHECK_EDIT_H

#include "pe/check/pe_check_state.h"

int exti__pe_step_headers(struct pe_check *c, struct exti_error *err);
int exti__pe_step_directories(struct pe_check *c, struct exti_error *err);
int exti__pe_step_sections(struct pe_check *c, struct exti_error *err);
int exti__pe_step_added(struct pe_check *c, struct exti_error *err);
int exti__pe_step_signature(struct pe_check *c, struct exti_error *err);

#endif
