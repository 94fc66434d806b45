/* The contents of segments in the copy, and the space around its load commands. */
#ifndef MACHO_CHECK_MACHO_CHECK_BYTES_H
#define MACHO_CHECK_MACHO_CHECK_BYTES_H

#include "macho/check/macho_check_state.h"

int exti__macho_step_bytes(struct macho_check *c, struct exti_error *err);
int exti__macho_step_room(struct macho_check *c, struct exti_error *err);

#endif
