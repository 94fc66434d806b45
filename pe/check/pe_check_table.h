/* Relocations, TLS, load configuration, debug directory, COFF symbols and checksum: the rules, and
 * the comparison with the original. */
#ifndef PE_CHECK_PE_CHECK_TABLE_H
#define PE_CHECK_PE_CHECK_TABLE_H

#include "pe/check/pe_check_state.h"

int exti__pe_rule_relocs(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_tls(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_load_config(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_debug(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_symbols(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_rule_checksum(struct pe_check *c, const struct pe_view *v, struct exti_error *err);
int exti__pe_step_relocs(struct pe_check *c, struct exti_error *err);
int exti__pe_step_load_flags(struct pe_check *c, struct exti_error *err);
int exti__pe_step_debug(struct pe_check *c, struct exti_error *err);
int exti__pe_step_checksum(struct pe_check *c, struct exti_error *err);

#endif
