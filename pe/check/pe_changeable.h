/* What of the original edits may change. */
#ifndef PE_CHECK_PE_CHANGEABLE_H
#define PE_CHECK_PE_CHANGEABLE_H

#include "pe/check/pe_check_state.h"

/* Notes what of the original edits may change. */
int exti__pe_changeable(struct pe_check *c, struct exti_error *err);

#endif
