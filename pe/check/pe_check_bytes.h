/* All other bytes: the comparison with the original. */
#ifndef PE_CHECK_PE_CHECK_BYTES_H
#define PE_CHECK_PE_CHECK_BYTES_H

#include "pe/check/pe_check_state.h"

int exti__pe_step_bytes(struct pe_check *c, struct exti_error *err);
int exti__pe_step_end(struct pe_check *c, struct exti_error *err);

#endif
