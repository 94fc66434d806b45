/* Bindings and imports of the copy. */
#ifndef MACHO_CHECK_MACHO_CHECK_REF_H
#define MACHO_CHECK_MACHO_CHECK_REF_H

#include "macho/check/macho_check_state.h"

int exti__macho_step_opcodes(struct macho_check *c, struct exti_error *err);
int exti__macho_step_imports(struct macho_check *c, struct exti_error *err);

#endif
