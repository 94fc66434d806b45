/* What the copies of a context owe each other. */
#ifndef LOADER_STORE_VERIFY_SET_H
#define LOADER_STORE_VERIFY_SET_H

#include "loader/store/manifest.h"

/* `copies` are the paths of the API copy and of each entry, in that order.  That they are files of their
 * own, and what verify_priv.h has for their format.  Copies that cannot be read are passed over. */
int exti__verify_set(const struct exti_manifest *m, char *const *copies, exti_report_fn report,
                     void *user, struct exti_error *err);

#endif
