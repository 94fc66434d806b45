/* Weak bindings of the copy. */
#ifndef MACHO_CHECK_MACHO_CHECK_WEAK_H
#define MACHO_CHECK_MACHO_CHECK_WEAK_H

#include "macho/check/macho_check_bind.h"

/* Appends the slots, by address in the original, that the copy's weak stream no longer binds. */
int exti__macho_weak_dropped(struct macho_check *c, struct macho_slots *out,
                             struct exti_error *err);

int exti__macho_step_weak(struct macho_check *c, struct exti_error *err);

#endif
