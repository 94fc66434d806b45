/* Universal files. */
#ifndef MACHO_CHECK_MACHO_CHECK_FAT_H
#define MACHO_CHECK_MACHO_CHECK_FAT_H

#include "macho/check/macho_check_state.h"

/* Checks the table and the slices' places, and each rewritten slice with `slice`. */
int exti__macho_check_fat(struct exti_span before, struct exti_span after, struct macho_check *c,
                          int (*slice)(struct macho_check *c, struct exti_span before,
                                       struct exti_span after, struct exti_error *err),
                          struct exti_error *err);

#endif
