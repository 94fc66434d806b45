/* Shifting the tables of __LINKEDIT that hold addresses. */
#ifndef MACHO_EDIT_MACHO_SHIFT_TABLES_H
#define MACHO_EDIT_MACHO_SHIFT_TABLES_H

#include "macho/edit/macho_build.h"

int exti__macho_shift_exports(struct macho_build *b, struct exti_error *err);
int exti__macho_shift_symbols(struct macho_build *b, struct exti_error *err);
int exti__macho_shift_function_starts(struct macho_build *b, struct exti_error *err);
int exti__macho_shift_data_in_code(struct macho_build *b, struct exti_error *err);

#endif
