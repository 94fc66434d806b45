/* Other tables of __LINKEDIT in the copy. */
#ifndef MACHO_CHECK_MACHO_CHECK_TABLE_H
#define MACHO_CHECK_MACHO_CHECK_TABLE_H

#include "macho/check/macho_check_state.h"

int exti__macho_step_symbols(struct macho_check *c, struct exti_error *err);
int exti__macho_step_starts(struct macho_check *c, struct exti_error *err);
int exti__macho_step_data_in_code(struct macho_check *c, struct exti_error *err);
int exti__macho_step_pieces(struct macho_check *c, struct exti_error *err);

#endif
