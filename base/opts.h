/* Option and output structs of the public interface, whose size tells their version. */
#ifndef BASE_OPTS_H
#define BASE_OPTS_H

#include <extisolate.h>

/* Copies the caller's option struct, of its declared size, into ours of `known` bytes and
 * zero-fills the rest.  `name` is for messages.  EXTI_E_ARG if bytes past `known` are not zero:
 * they belong to an option that this version would silently ignore. */
int exti__opts_take(void *ours, size_t known, const void *theirs, const char *name,
                    struct exti_error *err);

/* Fills the caller's output struct up to the smaller of both sizes and keeps its .size.  EXTI_E_ARG
 * if `theirs` is NULL or its .size is not set. */
int exti__opts_give(void *theirs, const void *ours, size_t known);

#endif
