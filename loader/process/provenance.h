/* What a library means by a reference: the system's loader looks into the program and into what is
 * open globally before the libraries that the file names.  Any thread, as long as the libraries
 * stay loaded; takes locks of the system's loader. */
#ifndef LOADER_PROCESS_PROVENANCE_H
#define LOADER_PROCESS_PROVENANCE_H

#include "loader/process/linkmap.h"

/* What the reference of `lib`, which has a handle, leads to if only the library itself and what it
 * needs define it: a symbol of the same version, or a variable of the calling thread.  NULL if
 * nothing defines it. */
void *exti__reference_meant(const struct exti_loaded *lib, const struct exti_reference *ref);

/* *out: whether `lib` needs `other`, directly or not. */
int exti__loaded_reaches(const struct exti_loaded *lib, const struct exti_loaded *other, bool *out,
                         struct exti_error *err);

#endif
