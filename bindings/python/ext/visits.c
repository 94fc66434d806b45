#include "bindings/python/ext/visits.h"

#include <pthread.h>
#include <stdatomic.h>

#include "bindings/python/ext/entries.h"

static atomic_ulong rounds; /* SIGINTs so far */

/* Calls a function of the interpreter with the number of a thread. */
static void tell(const struct pkg_entry *e, const char *function, unsigned long thread)
{
    struct extipy_call call = {.size = sizeof call, .function = function};
    struct extipy_values *values;
    size_t number;

    if (extipy_values_new(&values, NULL) < 0)
        return;
    number = extipy_int(values, (int64_t)thread);
    call.values = values;
    call.args = extipy_container(values, EXTIPY_TUPLE, &number, 1);
    extipy_call(e->ctx, &call, NULL, NULL, NULL);
    extipy_values_free(values);
}

/* Somebody may have seen it, who waits for its end or sends it an exception. */
static void end_watched(struct pkg_visit *v)
{
    pthread_mutex_lock(&pkg_users.lock);
    while (v->busy)
        pthread_cond_wait(&pkg_users.changed, &pkg_users.lock);
    if (v->sent) {
        /* It may have come too late for this call, and must not hit the next one. */
        pthread_mutex_unlock(&pkg_users.lock);
        tell(v->entry, "extisolate._dispatch:calm", v->thread->number);
        pthread_mutex_lock(&pkg_users.lock);
        if (v->entry->number == v->id) /* in a forked child it is the parent's */
            v->entry->users--;
    }
    pthread_cond_broadcast(&pkg_users.changed);
    pthread_mutex_unlock(&pkg_users.lock);
}

void pkg_visits_end(struct pkg_visit *v)
{
    atomic_exchange(&v->thread->last, v->next);
    if (atomic_load(&pkg_users.watchers) || v->sent)
        end_watched(v);
}

static int may_be_called(const struct pkg_entry *e, uint64_t id)
{
    return atomic_load(&e->id) == id && !atomic_load(&e->closing) &&
           (!e->ctx || atomic_load(&e->ready));
}

/* Once more: whoever closes it may have found it in use, and leave it open. */
static int may_still_be_called(const struct pkg_entry *e, uint64_t id)
{
    int may;

    pthread_mutex_lock(&pkg_users.lock);
    may = may_be_called(e, id);
    pthread_mutex_unlock(&pkg_users.lock);
    return may;
}

int pkg_visits_begin(struct pkg_visit *v, uint64_t id, struct exti_error *err)
{
    int rc = pkg_entries_may_use(err);

    if (rc < 0)
        return rc;
    v->thread = pkg_entries_thread();
    if (!v->thread)
        return pkg_entries_fail(err, EXTI_E_NOMEM, "out of memory");
    v->entry = pkg_entries_find(id);
    if (!v->entry)
        return pkg_entries_unknown(err, id);
    v->id = id;
    v->busy = 0;
    v->sent = 0;
    v->round = atomic_load(&rounds);
    v->next = atomic_load_explicit(&v->thread->last, memory_order_relaxed);
    atomic_exchange(&v->thread->last, v);
    if (may_be_called(v->entry, id) || may_still_be_called(v->entry, id))
        return 0;
    pkg_visits_end(v);
    return pkg_entries_unknown(err, id);
}

unsigned long pkg_visits_signals(void)
{
    return atomic_load(&rounds);
}

void pkg_visits_signalled(void)
{
    atomic_fetch_add(&rounds, 1);
}

/* Also if it is waited for, so that its interpreter can be closed. */
static int is_due(const struct pkg_visit *v, unsigned long this_round)
{
    const struct pkg_entry *e = v->entry;

    return v->round < this_round && atomic_load(&e->id) == v->id && e->ctx &&
           atomic_load(&e->closing) != PKG_CLOSED;
}

static struct pkg_visit *first_due(struct pkg_visit *v, unsigned long this_round)
{
    while (v && !is_due(v, this_round))
        v = v->next;
    return v;
}

/* Who watches.  The visit does not end before it is not busy any more, nor is its interpreter
 * closed before whoever ends the visit has seen that. */
static struct pkg_visit *next_visit(unsigned long this_round)
{
    struct pkg_visit *v = NULL;

    for (struct pkg_thread *t = pkg_users.threads; t && !v; t = t->next)
        v = first_due(atomic_load(&t->last), this_round);
    if (v) {
        v->round = this_round;
        v->busy = 1;
        v->entry->users += !v->sent;
    }
    return v;
}

/* A thread that is in several contexts is interrupted in each. */
void pkg_visits_interrupt(void)
{
    unsigned long this_round = atomic_load(&rounds);
    struct pkg_visit *v;

    pkg_entries_watch();
    while ((v = next_visit(this_round))) {
        pthread_mutex_unlock(&pkg_users.lock);
        tell(v->entry, "extisolate._dispatch:interrupt", v->thread->number);
        extipy_detach(v->entry->ctx, NULL); /* or this thread would keep the context mapped */
        pthread_mutex_lock(&pkg_users.lock);
        v->busy = 0;
        v->sent = 1;
        pthread_cond_broadcast(&pkg_users.changed);
    }
    pkg_entries_unwatch();
}
