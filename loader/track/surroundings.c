#include "loader/track/surroundings.h"

#include <stdatomic.h>

#include "base/mem.h"

/* A thread's own.  It may outlive the context, whose copies then stay mapped: so no pointer to the
 * context. */
struct place {
    struct exti_surroundings *entered;
    bool moved;     /* those may have brought the thread to their directory */
    locale_t given; /* the last that the thread got from here */
};

static _Thread_local struct place place;

/* In a shared object each use of a thread-local's address is a call, of which this makes one. */
__attribute__((noinline)) static struct place *own_place(void)
{
    return &place;
}

/* Those of closed contexts whose copies are still mapped. */
static _Atomic(struct exti_surroundings *) kept;

static locale_t locale_of(const struct exti_surroundings *s)
{
    return s && s->locale ? exti__locale_handle(s->locale) : LC_GLOBAL_LOCALE;
}

int exti__surroundings_survive_forks(void)
{
    int rc = exti__environment_survive_forks();

    if (!rc)
        rc = exti__times_survive_forks();
    if (!rc)
        rc = exti__directories_survive_forks();
    return rc ? rc : exti__locale_survive_forks();
}

static void free_surroundings(struct exti_surroundings *s)
{
    if (!s)
        return;
    exti__directory_free(s->directory);
    exti__locale_release(s->locale);
    exti__times_free(s->times);
    exti__environment_free(s->environment);
    exti__free(s);
}

int exti__surroundings_begin(struct exti_ctx *ctx, struct exti_error *err)
{
    struct exti_surroundings *s;
    int rc = 0;

    if (ctx->flags & EXTI_CTX_COPY_ONLY)
        return 0;
    s = exti__calloc(1, sizeof *s);
    if (!s)
        return exti__fail_nomem(err);
    if (!(ctx->flags & EXTI_CTX_PROCESS_ENVIRONMENT))
        rc = exti__environment_new(&s->environment, err);
    /* A narrower time_t has functions of other names beside these. */
    if (!rc && s->environment && sizeof(time_t) == sizeof(int64_t))
        rc = exti__times_new(&s->times, err);
    if (!rc && !(ctx->flags & EXTI_CTX_PROCESS_LOCALE))
        rc = exti__locale_new(&s->locale, err);
    if (!rc && !(ctx->flags & EXTI_CTX_PROCESS_DIRECTORY))
        rc = exti__directory_new(&s->directory, ctx->flags & EXTI_CTX_ENTER_DIRECTORY, err);
    if (rc) {
        free_surroundings(s);
        return rc;
    }
    s->moves = s->directory && (ctx->flags & EXTI_CTX_ENTER_DIRECTORY);
    atomic_init(&s->ctx, ctx);
    ctx->surroundings = s;
    return 0;
}

static bool is_given(const struct place *p, locale_t l)
{
    return l == LC_GLOBAL_LOCALE || l == p->given;
}

/* A program that has set another by uselocale keeps it.  Given once more, one that has changed
 * since: a thread has pointers to tables of its locale. */
static void give_locale(struct place *p, locale_t to)
{
    const locale_t before = uselocale(to);

    if (is_given(p, before))
        p->given = to;
    else
        uselocale(before);
}

locale_t exti__surroundings_uselocale(const struct exti_surroundings *s, locale_t to)
{
    const locale_t now = uselocale((locale_t)0);
    const locale_t told = is_given(&place, now) ? LC_GLOBAL_LOCALE : now;

    if (to == LC_GLOBAL_LOCALE)
        place.given = to = locale_of(s);
    uselocale(to);
    return told;
}

void exti__surroundings_use_locale(const struct exti_surroundings *s)
{
    give_locale(&place, locale_of(s));
}

/* Takes the thread out, also where a copy has set the locale of a thread that has not entered. */
static void leave(struct exti_surroundings *s)
{
    if (s && place.entered == s)
        exti__surroundings_enter(NULL);
    if (s && s->locale && uselocale((locale_t)0) == exti__locale_handle(s->locale))
        give_locale(&place, locale_of(place.entered));
}

static void keep(struct exti_surroundings *s)
{
    if (!s)
        return;
    exti__directory_end(s->directory);
    s->older = atomic_load(&kept);
    while (!atomic_compare_exchange_weak(&kept, &s->older, s))
        ;
}

void exti__surroundings_part(struct exti_ctx *ctx)
{
    struct exti_surroundings *s = ctx->surroundings;

    if (!s)
        return;
    atomic_store(&s->over, ctx->ended || ctx->leaving);
    atomic_store(&s->ctx, NULL);
}

void exti__surroundings_end(struct exti_ctx *ctx, bool mapped)
{
    leave(ctx->surroundings);
    if (mapped)
        keep(ctx->surroundings);
    else
        free_surroundings(ctx->surroundings);
    ctx->surroundings = NULL;
}

struct exti_ctx *_Atomic *exti__surroundings_entered(void)
{
    return place.entered ? &place.entered->ctx : NULL;
}

bool exti__surroundings_are_over(void)
{
    const struct exti_surroundings *s = place.entered;

    return s && !atomic_load(&s->ctx) && atomic_load(&s->over);
}

struct exti_surroundings *exti__surroundings_of_thread(void)
{
    return place.entered;
}

struct exti_surroundings *exti__surroundings_enter(struct exti_surroundings *s)
{
    struct place *p = own_place();
    struct exti_surroundings *before = p->entered;
    const bool moves = s && s->moves, had_moved = p->moved;

    p->entered = s;
    p->moved = moves;
    give_locale(p, locale_of(s));
    if (moves || had_moved)
        exti__directory_enter(s ? s->directory : NULL);
    return before;
}

int exti__surroundings_own_thread(struct exti_surroundings *s, bool started)
{
    return s && s->directory ? exti__directory_own_thread(s->directory, started) : 0;
}
