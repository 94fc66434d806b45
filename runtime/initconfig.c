#include "runtime/initconfig.h"

#include <stdlib.h>

#include "runtime/fail.h"
#include "runtime/initconfig_ops.h"

int pyrt_initconfig_new(struct pyrt_initconfig **out, const struct pyrt_api *py,
                        const char *version, struct exti_error *err)
{
    struct pyrt_initconfig *c = calloc(1, sizeof *c);
    int rc;

    if (!c)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    c->py = py;
    c->version = version;
    c->ops = py->build.minor > PYRT_MINOR_LAYOUT ? &pyrt_initconfig_named : &pyrt_initconfig_layout;
    rc = c->ops->init(c, err);
    if (rc < 0)
        free(c);
    else
        *out = c;
    return rc;
}

int pyrt_initconfig_set(struct pyrt_initconfig *c, const struct pyrt_setting *s,
                        struct exti_error *err)
{
    return c->ops->set[s->kind](c, s, err);
}

int pyrt_initconfig_start(struct pyrt_initconfig *c, struct exti_error *err)
{
    return c->ops->start(c, err);
}

void pyrt_initconfig_free(struct pyrt_initconfig *c)
{
    if (!c)
        return;
    c->ops->clear(c);
    free(c);
}
