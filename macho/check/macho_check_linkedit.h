/* Rules for the layout of __LINKEDIT and for symbol table entries. */
#ifndef MACHO_CHECK_MACHO_CHECK_LINKEDIT_H
#define MACHO_CHECK_MACHO_CHECK_LINKEDIT_H

#include "macho/check/macho_check_state.h"

int exti__macho_rule_blobs(struct macho_check *c, const struct macho_file *f,
                           struct exti_error *err);
int exti__macho_rule_order(struct macho_check *c, const struct macho_file *f,
                           struct exti_error *err);
int exti__macho_rule_symbols(struct macho_check *c, const struct macho_file *f,
                             struct exti_error *err);

#endif
