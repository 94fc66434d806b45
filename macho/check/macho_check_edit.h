/* The header and the load commands of the copy. */
#ifndef MACHO_CHECK_MACHO_CHECK_EDIT_H
#define MACHO_CHECK_MACHO_CHECK_EDIT_H

#include "macho/check/macho_check_state.h"

int exti__macho_step_header(struct macho_check *c, struct exti_error *err);
int exti__macho_step_commands(struct macho_check *c, struct exti_error *err);
int exti__macho_step_id(struct macho_check *c, struct exti_error *err);
int exti__macho_step_needed(struct macho_check *c, struct exti_error *err);
int exti__macho_step_rpaths(struct macho_check *c, struct exti_error *err);

#endif
