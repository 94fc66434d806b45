/* What a process has one of and a context has its own: environment variables, the time zone that
 * one of them tells, the locale, and the directory with root and umask.  ELF systems. */
#ifndef LOADER_TRACK_SURROUNDINGS_H
#define LOADER_TRACK_SURROUNDINGS_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "loader/track/context.h"

#if !defined(__APPLE__) && !defined(_WIN32)

#include "loader/track/address_map.h"
#include "loader/track/context_locale.h"
#include "loader/track/context_zone.h"
#include "loader/track/directory.h"
#include "loader/track/environment.h"

struct exti_surroundings {
    struct exti_ctx *_Atomic ctx;         /* NULL once it is closed */
    atomic_bool over;                     /* that had ended alone before, or was about to */
    struct exti_environment *environment; /* owned; NULL: the process's */
    struct exti_times *times;         /* owned; NULL: the process's; none without an environment */
    struct exti_locale *locale;       /* owned; NULL: the process's */
    struct exti_directory *directory; /* owned; NULL: the process's */
    bool moves;                       /* threads that enter come to that */
    struct exti_surroundings *older;  /* of those that are kept beyond their context */
};

/* Installs the fork handlers; 0 or an errno value.  To be called before any copy is loaded. */
int exti__surroundings_survive_forks(void);

/* Gives the context its own of all that its flags do not leave to the process. */
int exti__surroundings_begin(struct exti_ctx *ctx, struct exti_error *err);

/* Which of all that it has got, a bit each. */
static inline unsigned exti__surroundings_kinds(const struct exti_ctx *ctx)
{
    const struct exti_surroundings *s = ctx->surroundings;

    if (!s)
        return 0;
    return (s->environment ? 1u : 0) | (s->times ? 2u : 0) | (s->locale ? 4u : 0) |
           (s->directory ? 8u : 0);
}

/* The context is closed: threads that are in its surroundings do not find it there any more. */
void exti__surroundings_part(struct exti_ctx *ctx);

/* To be called last.  Copies that stay `mapped` go on using them, so then nothing is freed. */
void exti__surroundings_end(struct exti_ctx *ctx, bool mapped);

/* Those that the calling thread has entered, or NULL.  A signal handler may call it. */
struct exti_surroundings *exti__surroundings_of_thread(void);

/* Those of the copy that `caller` lies in or, if that is no copy's, those that the thread has
 * entered.  NULL: the process's.  A signal handler may call it. */
static inline struct exti_surroundings *exti__surroundings_at(uintptr_t caller)
{
    const struct exti_ctx *ctx = exti__address_map_ctx(caller);

    return ctx ? ctx->surroundings : exti__surroundings_of_thread();
}

/* The environment of those, or NULL: the process's. */
static inline struct exti_environment *exti__environment_at(uintptr_t caller)
{
    const struct exti_surroundings *s = exti__surroundings_at(caller);

    return s ? s->environment : NULL;
}

/* Where the context is said whose surroundings the calling thread has entered; NULL: it has entered
 * none.  A signal handler may call it, and the next one. */
struct exti_ctx *_Atomic *exti__surroundings_entered(void);
/* Whether that context has been closed, and had ended alone. */
bool exti__surroundings_are_over(void);

/* Those that the calling thread is in.  Entering returns the former ones, for leaving.  A thread
 * that has set a locale of its own keeps it. */
struct exti_surroundings *exti__surroundings_enter(struct exti_surroundings *s);

/* Makes the calling thread one that has their directory for good.  `started`: another such thread
 * has started it.  0 or an errno value. */
int exti__surroundings_own_thread(struct exti_surroundings *s, bool started);

/* uselocale, where LC_GLOBAL_LOCALE means the locale of `s`. */
locale_t exti__surroundings_uselocale(const struct exti_surroundings *s, locale_t to);

/* Has the calling thread use the locale of `s`, wherever it is, unless it keeps one of its own. */
void exti__surroundings_use_locale(const struct exti_surroundings *s);

#else

static inline int exti__surroundings_survive_forks(void)
{
    return 0;
}
static inline int exti__surroundings_begin(struct exti_ctx *ctx, struct exti_error *err)
{
    (void)ctx, (void)err;
    return 0;
}
static inline unsigned exti__surroundings_kinds(const struct exti_ctx *ctx)
{
    (void)ctx;
    return 0;
}
static inline void exti__surroundings_part(struct exti_ctx *ctx)
{
    (void)ctx;
}
static inline void exti__surroundings_end(struct exti_ctx *ctx, bool mapped)
{
    (void)ctx, (void)mapped;
}
static inline struct exti_surroundings *exti__surroundings_enter(struct exti_surroundings *s)
{
    return s;
}
static inline int exti__surroundings_own_thread(struct exti_surroundings *s, bool started)
{
    (void)s, (void)started;
    return ENOSYS;
}

#endif
#endif
