/* The libraries and search paths that a request leads to. */
#ifndef MACHO_CHECK_MACHO_CHECK_EXPECT_H
#define MACHO_CHECK_MACHO_CHECK_EXPECT_H

#include "macho/check/macho_check_state.h"

/* Fills c->expect if there is a request. */
int exti__macho_expect(struct macho_check *c, struct exti_error *err);
void exti__macho_expect_free(struct macho_expect *e);

#endif
