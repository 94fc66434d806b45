/* The loader's rules for headers, sections and directories. */
#ifndef PE_CHECK_PE_CHECK_HEADER_H
#define PE_CHECK_PE_CHECK_HEADER_H

#include "pe/check/pe_check_state.h"

int exti__pe_rule_machine(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_library(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_alignment(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_headers(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_addresses(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_image_size(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_raw(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_directories(struct pe_check *c, const struct pe_view *v, struct exti_error *err);

#endif
