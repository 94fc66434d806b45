#include "runtime/fail.h"
#include "runtime/initconfig_ops.h"

int pyrt_initconfig_failed(const struct pyrt_initconfig *c, const char *func, const char *message,
                           struct exti_error *err)
{
    return pyrt_fail(err, EXTI_E_LOAD, "CPython %s did not start: %s%s%s", c->version,
                     func ? func : "", func ? ": " : "", message ? message : "no reason given");
}

int pyrt_initconfig_unknown(const struct pyrt_initconfig *c, const char *name,
                            struct exti_error *err)
{
    return pyrt_fail(err, EXTI_E_ARG, "CPython %s has no option \"%s\" of this type", c->version,
                     name);
}
