/* References to thread-local variables of libraries that the system's loader has mapped.  Only ELF
 * has them: elsewhere they are never asked about.  Any thread, as long as the libraries stay
 * loaded; the address that a variable has depends on the thread. */
#ifndef LOADER_PROCESS_TLS_REFERENCE_H
#define LOADER_PROCESS_TLS_REFERENCE_H

#include "loader/process/linkmap.h"

/* In each function `ref` is not EXTI_REF_ADDRESS. */

/* The variable of the calling thread that the reference leads to; NULL if it is weak and bound to
 * none.  May allocate the thread's block of the library. */
void *exti__tls_variable(const struct exti_reference *ref);

/* Gives some address of the library that owns the variable, or 0 in *out if none is found. */
int exti__tls_target(const struct exti_reference *ref, uintptr_t *out, struct exti_error *err);

/* Likewise for the variable at an address of the calling thread. */
int exti__tls_owner(const char *name, const void *variable, uintptr_t *out, struct exti_error *err);

/* The words that the slot would hold if the reference led to the same variable in `to`, which has
 * a handle: another copy of the same file, or another build of the library.  *count is 0 if `to`
 * lacks it, or cannot be reached in that way. */
int exti__tls_counterpart(const struct exti_reference *ref, const struct exti_loaded *to,
                          uintptr_t words[2], size_t *count, struct exti_error *err);

#endif
