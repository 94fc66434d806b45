/* Holds what the manifest says of needed libraries against what is on disk now. */
#ifndef LOADER_STORE_VERIFY_NEEDS_H
#define LOADER_STORE_VERIFY_NEEDS_H

#include "loader/store/manifest.h"

/* Reports copies that share a library of which the policy wants a copy, or whose library was
 * missing when they were made and is found now.  Copies made elsewhere, with another search path or
 * other quirks, are passed over: the next `copy` looks again for all that they need.  So are those
 * whose sources are gone or have changed. */
int exti__verify_needs(const struct exti_manifest *m, char *const *copies, exti_report_fn report,
                       void *user, struct exti_error *err);

#endif
