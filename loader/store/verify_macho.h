/* Checks a context's Mach-O copies against each other, as dyld would load them. */
#ifndef LOADER_STORE_VERIFY_MACHO_H
#define LOADER_STORE_VERIFY_MACHO_H

#include "loader/store/verify_members.h"

/* Reports needed libraries that are neither copies, nor the system's, nor shared by the
 * manifest's word; and copies whose install names let dyld take them for their originals or for
 * each other. */
int exti__verify_macho(struct exti_member_set *s, struct exti_error *err);

#endif
