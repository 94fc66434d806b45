/* Checks a context's PE copies against each other, as Windows would load them. */
#ifndef LOADER_STORE_VERIFY_PE_H
#define LOADER_STORE_VERIFY_PE_H

#include "loader/store/verify_members.h"

/* Reports:
 * - file names that Windows cannot tell apart;
 * - imports, delayed imports and forwarders that name an original of which the context has a
 *   copy, or a library that is not there;
 * - symbols that are not in the copy that they are imported from. */
int exti__verify_pe(struct exti_member_set *s, struct exti_error *err);

#endif
