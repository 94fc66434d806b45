/* What a library means by a reference: the system's loader looks into the program and into what is
 * open globally before the libraries that the file names.  Any thread, as long as the libraries
 * stay loaded; takes locks of the system's loader. */
#ifndef LOADER_PROCESS_PROVENANCE_H
#define LOADER_PROCESS_PROVENANCE_H

#include "loader/process/linkmap.h"

/* What the reference of `lib`, which has a handle, leads to if only the library itself and what it
 * needs define it: a symbol of the version that the system's loader would bind it to.  *owner: the
 * library that defines it, without a handle; *address: the symbol, or for a thread-local one some
 * address of the library.  *address is 0 if nothing defines it, or if the library
 * leaves it to others: it is weak or unique, and the library itself does not bind to its own. */
int exti__reference_meant(const struct exti_loaded *lib, const struct exti_reference *ref,
                          struct exti_loaded *owner, uintptr_t *address, struct exti_error *err);

/* *out: whether `lib` needs `other`, directly or not. */
int exti__loaded_reaches(const struct exti_loaded *lib, const struct exti_loaded *other, bool *out,
                         struct exti_error *err);

#endif
