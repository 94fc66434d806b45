/* The code signature. */
#ifndef MACHO_CHECK_MACHO_CHECK_SIGN_H
#define MACHO_CHECK_MACHO_CHECK_SIGN_H

#include "macho/check/macho_check_state.h"

int exti__macho_rule_signature(struct macho_check *c, const struct macho_file *f,
                               struct exti_error *err);
int exti__macho_step_signature(struct macho_check *c, struct exti_error *err);

#endif
