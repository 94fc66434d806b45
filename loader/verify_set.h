/* What the copies of a context owe each other. */
#ifndef LOADER_VERIFY_SET_H
#define LOADER_VERIFY_SET_H

#include "loader/manifest.h"

/* `copies` are the paths of the API copy and of each entry, in that order.  That they are files of their
 * own, whose names the system tells apart; and of PE files that nothing they import, now or late, or
 * forward to is an original that the context has a copy of, or a library that is not there, and that
 * each symbol is in the copy that it is imported from.  Copies that cannot be read are passed over. */
int exti__verify_set(const struct exti_manifest *m, char *const *copies, exti_report_fn report,
                     void *user, struct exti_error *err);

/* verify_macho.c: likewise, of Mach-O files, that each library they need is one of the copies, the system's,
 * or one that the manifest says is shared, and that no copy can be taken for its original. */
int exti__verify_macho(const struct exti_manifest *m, char *const *copies, exti_report_fn report,
                       void *user, struct exti_error *err);

#endif
