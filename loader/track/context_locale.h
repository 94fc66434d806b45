/* The locale of one context, as setlocale of its copies sets it: a locale of threads, which the
 * context's threads use where others use the process's.  Of the GNU C library.  Any thread. */
#ifndef LOADER_TRACK_CONTEXT_LOCALE_H
#define LOADER_TRACK_CONTEXT_LOCALE_H

#include <locale.h>
#include <stdbool.h>

#include "base/error.h"
#include "loader/track/environment.h"

struct exti_locale;

/* Installs the fork handlers; 0 or an errno value. */
int exti__locale_survive_forks(void);

/* Begins as the process's is.  *out: NULL where the C library has none for a context. */
int exti__locale_new(struct exti_locale **out, struct exti_error *err);

/* What threads use may be used by another context from now on, but stays valid.  NULL: ok. */
void exti__locale_release(struct exti_locale *l);

/* As setlocale, whose "" is what `e` says; NULL: the process's environment. */
char *exti__locale_set(struct exti_locale *l, int category, const char *name,
                       struct exti_environment *e);

/* As newlocale, likewise. */
locale_t exti__locale_make(int mask, const char *name, locale_t base, struct exti_environment *e);

struct lconv *exti__locale_conventions(struct exti_locale *l);

/* What the context's threads use for LC_GLOBAL_LOCALE. */
locale_t exti__locale_handle(struct exti_locale *l);

#endif
