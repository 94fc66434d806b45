/* A Mach-O image reaches thread-local variables through its own descriptors
 * (S_THREAD_LOCAL_VARIABLES), and a PE file imports none. */
#include "loader/process/tls_reference.h"

void *exti__tls_variable(const struct exti_reference *ref)
{
    (void)ref;
    return NULL;
}

int exti__tls_target(const struct exti_reference *ref, uintptr_t *out, struct exti_error *err)
{
    (void)ref;
    (void)err;
    *out = 0;
    return 0;
}

int exti__tls_owner(const char *name, const void *variable, uintptr_t *out, struct exti_error *err)
{
    (void)name;
    (void)variable;
    (void)err;
    *out = 0;
    return 0;
}

int exti__tls_counterpart(const struct exti_reference *ref, const struct exti_loaded *to,
                          uintptr_t words[2], size_t *count, struct exti_error *err)
{
    (void)ref;
    (void)to;
    (void)words;
    (void)err;
    *count = 0;
    return 0;
}
