/* Checking the option structs of the public interface. */
#ifndef BASE_OPTS_H
#define BASE_OPTS_H

#include <extisolate.h>

/* Copies a caller's option struct of its declared size into ours of `known` bytes, zero-filling what
 * it lacks.  A non-zero tail that we do not know is EXTI_E_ARG: we would silently ignore it. */
int exti__opts_take(void *ours, size_t known, const void *theirs, const char *name,
                    struct exti_error *err);

/* Fills the caller's output struct up to the smaller of both sizes, keeping its .size. */
int exti__opts_give(void *theirs, const void *ours, size_t known);

#endif
