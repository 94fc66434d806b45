/* dyld's rules for load commands. */
#ifndef MACHO_CHECK_MACHO_CHECK_COMMAND_H
#define MACHO_CHECK_MACHO_CHECK_COMMAND_H

#include "macho/check/macho_check_state.h"

int exti__macho_rule_identity(struct macho_check *c, const struct macho_file *f,
                              struct exti_error *err);
int exti__macho_rule_dylibs(struct macho_check *c, const struct macho_file *f,
                            struct exti_error *err);
int exti__macho_rule_rpaths(struct macho_check *c, const struct macho_file *f,
                            struct exti_error *err);

#endif
