/* Checks of a context's copies against each other. */
#ifndef LOADER_STORE_VERIFY_SET_H
#define LOADER_STORE_VERIFY_SET_H

#include "loader/store/manifest.h"

/* Reports copies that are one file with another copy or with their original, and what
 * verify_pe.h and verify_macho.h look for.  `copies` are the paths of the API copy and of each
 * entry, in that order.  Copies that cannot be read are skipped: they are the caller's to
 * report. */
int exti__verify_set(const struct exti_manifest *m, char *const *copies, exti_report_fn report,
                     void *user, struct exti_error *err);

#endif
