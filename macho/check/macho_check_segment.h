/* dyld's rules for segments and sections. */
#ifndef MACHO_CHECK_MACHO_CHECK_SEGMENT_H
#define MACHO_CHECK_MACHO_CHECK_SEGMENT_H

#include "macho/check/macho_check_state.h"

int exti__macho_rule_segments(struct macho_check *c, const struct macho_file *f,
                              struct exti_error *err);
int exti__macho_rule_sections(struct macho_check *c, const struct macho_file *f,
                              struct exti_error *err);

#endif
