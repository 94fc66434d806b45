#define _GNU_SOURCE /* clearenv */
#include "loader/interpose/environment_calls.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "loader/track/redirects.h"
#include "loader/track/surroundings.h"

/* The caller's own, or NULL. */
#define OWN exti__environment_at((uintptr_t)__builtin_return_address(0))

static char *interposed_getenv(const char *name)
{
    struct exti_environment *e = OWN;

    return e ? exti__environment_get(e, name) : getenv(name);
}

/* Linux: programs with more rights than their user do not trust what that says. */
static char *interposed_secure_getenv(const char *name)
{
    struct exti_environment *e = OWN;

    if (getauxval(AT_SECURE))
        return NULL;
    return e ? exti__environment_get(e, name) : getenv(name);
}

static int interposed_setenv(const char *name, const char *value, int overwrite)
{
    struct exti_environment *e = OWN;

    return e ? exti__environment_set(e, name, value, overwrite) : setenv(name, value, overwrite);
}

static int interposed_putenv(char *entry)
{
    struct exti_environment *e = OWN;

    return e ? exti__environment_put(e, entry) : putenv(entry);
}

static int interposed_unsetenv(const char *name)
{
    struct exti_environment *e = OWN;

    return e ? exti__environment_unset(e, name) : unsetenv(name);
}

static int interposed_clearenv(void)
{
    struct exti_environment *e = OWN;

    return e ? exti__environment_clear(e) : clearenv();
}

void *exti__environment_call(const struct exti_ctx *ctx, const char *symbol)
{
    struct exti_environment *e = ctx->surroundings ? ctx->surroundings->environment : NULL;
    const struct exti_redirect calls[] = {
        {"getenv", EXTI_ADDRESS(interposed_getenv)},
        {"secure_getenv", EXTI_ADDRESS(interposed_secure_getenv)},
        {"__secure_getenv", EXTI_ADDRESS(interposed_secure_getenv)},
        {"setenv", EXTI_ADDRESS(interposed_setenv)},
        {"putenv", EXTI_ADDRESS(interposed_putenv)},
        {"unsetenv", EXTI_ADDRESS(interposed_unsetenv)},
        {"clearenv", EXTI_ADDRESS(interposed_clearenv)},
        {"environ", e ? &e->list : NULL},
        {"__environ", e ? &e->list : NULL},
        {"_environ", e ? &e->list : NULL},
    };

    return e ? exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol) : NULL;
}
