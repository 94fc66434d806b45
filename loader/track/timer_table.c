/* Lists that handlers read without a lock.  What is on one stays there: an entry is used again for
 * a later timer of the same list. */
#include "loader/track/timer_table.h"

#include <stdatomic.h>
#include <stdint.h>

#include "base/mem.h"

struct entry {
    _Atomic(intptr_t) timer; /* for those that send signals the kernel's number */
    _Atomic(struct exti_signals *) signals;
    _Atomic(const struct exti_ctx *) ctx; /* NULL: it was deleted, but a signal may be on its way */
    struct entry *next;
};

#define NO_TIMER INTPTR_MAX
#define LISTS 64
static _Atomic(struct entry *) lists[LISTS];

static _Atomic(struct entry *) *list_of(intptr_t timer)
{
    return &lists[(uintptr_t)timer % LISTS];
}

static struct entry *find_entry(intptr_t timer)
{
    struct entry *e = atomic_load(list_of(timer));

    while (e && atomic_load(&e->timer) != timer)
        e = e->next;
    return e;
}

/* One of a timer that is gone, or NULL. */
static struct entry *find_unused(intptr_t timer)
{
    struct entry *e = find_entry(timer);

    if (!e)
        e = atomic_load(list_of(timer));
    while (e && atomic_load(&e->ctx))
        e = e->next;
    return e;
}

bool exti__timer_add(timer_t timer, const struct exti_ctx *ctx, struct exti_signals *s)
{
    const intptr_t key = (intptr_t)timer;
    struct entry *e = find_unused(key), *fresh = e ? NULL : exti__calloc(1, sizeof *fresh);

    if (!e && !fresh)
        return false;
    if (!e)
        e = fresh;
    atomic_store(&e->timer, NO_TIMER);
    atomic_store(&e->signals, s);
    atomic_store(&e->ctx, ctx);
    atomic_store(&e->timer, key);
    if (fresh) {
        fresh->next = atomic_load(list_of(key));
        atomic_store(list_of(key), fresh);
    }
    return true;
}

void exti__timer_remove(timer_t timer)
{
    struct entry *e = find_entry((intptr_t)timer);

    if (e)
        atomic_store(&e->ctx, NULL);
}

bool exti__timer_next(const struct exti_ctx *ctx, timer_t *out)
{
    for (size_t i = 0; i < LISTS; i++)
        for (struct entry *e = atomic_load(&lists[i]); e; e = e->next) {
            const struct exti_ctx *of = atomic_load(&e->ctx);

            if (!of || (ctx && of != ctx))
                continue;
            *out = (timer_t)atomic_load(&e->timer);
            return true;
        }
    return false;
}

void exti__timer_forget_all(void)
{
    for (size_t i = 0; i < LISTS; i++)
        for (struct entry *e = atomic_load(&lists[i]); e; e = e->next) {
            atomic_store(&e->timer, NO_TIMER);
            atomic_store(&e->ctx, NULL);
        }
}

struct exti_signals *exti__timer_owner(int number, bool *deleted)
{
    const struct entry *e = find_entry(number);
    struct exti_signals *s = e ? atomic_load(&e->signals) : NULL;

    *deleted = e && !atomic_load(&e->ctx);
    /* It was given to another timer meanwhile. */
    if (e && atomic_load(&e->timer) != number)
        return NULL;
    return s;
}
