/* Which bytes of the original the edits may change. */
#ifndef PE_CHECK_PE_CHANGEABLE_H
#define PE_CHECK_PE_CHANGEABLE_H

#include "pe/check/pe_check_state.h"

/* Fills c->texts, c->fields and c->forwarders_change. */
int exti__pe_changeable(struct pe_check *c, struct exti_error *err);

#endif
