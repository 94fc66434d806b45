#include "loader/track/redirects.h"

#include <string.h>

void *exti__redirect_find(const struct exti_redirect *redirects, size_t count, const char *symbol)
{
    for (size_t i = 0; i < count; i++)
        if (redirects[i].symbol[0] == symbol[0] && strcmp(redirects[i].symbol, symbol) == 0)
            return redirects[i].to;
    return NULL;
}
