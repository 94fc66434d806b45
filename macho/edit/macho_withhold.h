/* Withholding initialisers and terminators from dyld. */
#ifndef MACHO_EDIT_MACHO_WITHHOLD_H
#define MACHO_EDIT_MACHO_WITHHOLD_H

#include "macho/edit/macho_build.h"

/* Changes the new load commands if the request says so: macho/read/macho_withheld.h. */
int exti__macho_withhold(struct macho_build *b, struct exti_error *err);

#endif
