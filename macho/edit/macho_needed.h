/* Editing the needed libraries. */
#ifndef MACHO_EDIT_MACHO_NEEDED_H
#define MACHO_EDIT_MACHO_NEEDED_H

#include "macho/edit/macho_items.h"

int exti__macho_edit_needed(struct macho_edit *e, struct exti_error *err);

/* Reports that the library that `op` replaces or removes is missing. */
int exti__macho_fail_needed(const struct exti_needed *op, struct exti_error *err);

#endif
