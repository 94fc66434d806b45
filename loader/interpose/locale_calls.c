#include "loader/interpose/locale_calls.h"

#include <locale.h>

#include "loader/track/redirects.h"
#include "loader/track/surroundings.h"

/* The caller's surroundings if they have a locale, else NULL. */
static struct exti_surroundings *with_locale(uintptr_t call)
{
    struct exti_surroundings *s = exti__surroundings_at(call);

    return s && s->locale ? s : NULL;
}

#define OWN with_locale((uintptr_t)__builtin_return_address(0))

static char *interposed_setlocale(int category, const char *name)
{
    struct exti_surroundings *s = OWN;
    char *told;

    if (!s)
        return setlocale(category, name);
    told = exti__locale_set(s->locale, category, name, s->environment);
    if (told && name)
        exti__surroundings_use_locale(s);
    return told;
}

static struct lconv *interposed_localeconv(void)
{
    struct exti_surroundings *s = OWN;

    return s ? exti__locale_conventions(s->locale) : localeconv();
}

static locale_t interposed_uselocale(locale_t to)
{
    struct exti_surroundings *s = OWN;

    return s ? exti__surroundings_uselocale(s, to) : uselocale(to);
}

static locale_t interposed_newlocale(int mask, const char *name, locale_t base)
{
    struct exti_surroundings *s = OWN;

    return s ? exti__locale_make(mask, name, base, s->environment) : newlocale(mask, name, base);
}

static locale_t interposed_duplocale(locale_t from)
{
    struct exti_surroundings *s = OWN;

    return duplocale(s && from == LC_GLOBAL_LOCALE ? exti__locale_handle(s->locale) : from);
}

void *exti__locale_call(const struct exti_ctx *ctx, const char *symbol)
{
    const struct exti_redirect calls[] = {
        {"setlocale", EXTI_ADDRESS(interposed_setlocale)},
        {"localeconv", EXTI_ADDRESS(interposed_localeconv)},
        {"uselocale", EXTI_ADDRESS(interposed_uselocale)},
        {"__uselocale", EXTI_ADDRESS(interposed_uselocale)},
        {"newlocale", EXTI_ADDRESS(interposed_newlocale)},
        {"__newlocale", EXTI_ADDRESS(interposed_newlocale)},
        {"duplocale", EXTI_ADDRESS(interposed_duplocale)},
        {"__duplocale", EXTI_ADDRESS(interposed_duplocale)},
    };

    if (!ctx->surroundings || !ctx->surroundings->locale)
        return NULL;
    return exti__redirect_find(calls, sizeof calls / sizeof *calls, symbol);
}
