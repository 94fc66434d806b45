#include "loader/interpose/directory_calls.h"

#include "loader/track/redirects.h"
#include "loader/track/surroundings.h"

void *exti__directory_call(const struct exti_ctx *ctx, const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"chdir", EXTI_ADDRESS(exti__directory_chdir)},
        {"fchdir", EXTI_ADDRESS(exti__directory_fchdir)},
        {"umask", EXTI_ADDRESS(exti__directory_umask)},
    };

    if (!ctx->surroundings || !ctx->surroundings->directory)
        return NULL;
    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
