#include "bindings/python/ext/entries.h"

#include <stdio.h>
#include <stdlib.h>

struct pkg_users pkg_users = {.lock = PTHREAD_MUTEX_INITIALIZER,
                              .changed = PTHREAD_COND_INITIALIZER};

/* The main interpreter is never closed. */
static struct pkg_entry main_entry = {.id = PKG_MAIN};
/* Lists by the remainder of the number, as each call looks for one of what may be a thousand.  So
 * that it needs no lock, an entry stays in its list, where a later interpreter takes it. */
#define LISTS 64
static _Atomic(struct pkg_entry *) lists[LISTS] = {[PKG_MAIN] = &main_entry};
static uint64_t last_id = PKG_MAIN;

int pkg_entries_fail(struct exti_error *err, int code, const char *message)
{
    if (err) {
        *err = (struct exti_error){.code = code, .offset = EXTI_NO_OFFSET};
        snprintf(err->message, sizeof err->message, "%s", message);
    }
    return code;
}

int pkg_entries_may_use(struct exti_error *err)
{
    if (!atomic_load(&pkg_users.stopped))
        return 0;
    return pkg_entries_fail(err, EXTIPY_E_CLOSED, "the main interpreter is ending");
}

int pkg_entries_unknown(struct exti_error *err, uint64_t id)
{
    char message[64];

    snprintf(message, sizeof message, "interpreter %llu not found", (unsigned long long)id);
    return pkg_entries_fail(err, PKG_E_UNKNOWN, message);
}

struct pkg_entry *pkg_entries_find(uint64_t id)
{
    struct pkg_entry *e = atomic_load_explicit(&lists[id % LISTS], memory_order_acquire);

    while (e && atomic_load_explicit(&e->id, memory_order_acquire) != id)
        e = e->next;
    return e;
}

/* One that no interpreter has, with the lock held.  NULL: no memory. */
static struct pkg_entry *free_entry(uint64_t id)
{
    _Atomic(struct pkg_entry *) *list = &lists[id % LISTS];
    struct pkg_entry *e = atomic_load(list);

    while (e && (e == &main_entry || e->number))
        e = e->next;
    if (e || !(e = calloc(1, sizeof *e)))
        return e;
    atomic_init(&e->id, PKG_NOBODY);
    e->next = atomic_load(list);
    atomic_store(list, e);
    return e;
}

struct pkg_entry *pkg_entries_new(const struct pkg_opening *how)
{
    struct pkg_entry *e;

    pthread_mutex_lock(&pkg_users.lock);
    e = free_entry(last_id + 1);
    if (e) {
        e->number = ++last_id;
        e->streams = how->streams;
        e->owner = how->owner;
        e->ctx = NULL;
    }
    pthread_mutex_unlock(&pkg_users.lock);
    return e;
}

void pkg_entries_publish(struct pkg_entry *e)
{
    atomic_store(&e->ready, 0);
    atomic_store(&e->closing, PKG_OPEN);
    atomic_store(&e->id, e->number);
}

/* Its memory stays, as a call may be looking at it. */
void pkg_entries_give_up(struct pkg_entry *e)
{
    pthread_mutex_lock(&pkg_users.lock);
    atomic_store(&e->id, PKG_NOBODY);
    e->number = 0;
    pthread_mutex_unlock(&pkg_users.lock);
}

static void forget_entries(void)
{
    for (size_t i = 0; i < LISTS; i++)
        for (struct pkg_entry *e = atomic_load(&lists[i]); e; e = e->next) {
            atomic_store(&e->closing, PKG_OPEN);
            e->users = 0;
            e->number = 0;
            atomic_store(&e->id, e == &main_entry ? PKG_MAIN : PKG_NOBODY);
        }
}

void pkg_entries_each(void (*function)(void *user, const struct pkg_entry *e), void *user)
{
    pthread_mutex_lock(&pkg_users.lock);
    for (size_t i = 0; i < LISTS; i++)
        for (const struct pkg_entry *e = atomic_load(&lists[i]); e; e = e->next)
            if (atomic_load(&e->id) != PKG_NOBODY)
                function(user, e);
    pthread_mutex_unlock(&pkg_users.lock);
}

/* ---- threads ---- */

static _Thread_local struct pkg_thread *own;
static pthread_key_t own_key; /* for its destructor */
static pthread_once_t own_once = PTHREAD_ONCE_INIT;
static int own_error;

/* Of a thread that ends: it may be within a call, by pthread_exit. */
static void end_own(void *arg)
{
    struct pkg_thread *ended = arg, **link = &pkg_users.threads;

    pthread_mutex_lock(&pkg_users.lock);
    while (*link != ended)
        link = &(*link)->next;
    *link = ended->next;
    pthread_cond_broadcast(&pkg_users.changed);
    pthread_mutex_unlock(&pkg_users.lock);
    own = NULL;
    free(ended);
}

static void make_own_key(void)
{
    own_error = pthread_key_create(&own_key, end_own);
}

static struct pkg_thread *make_own(void)
{
    struct pkg_thread *t;

    pthread_once(&own_once, make_own_key);
    t = own_error ? NULL : calloc(1, sizeof *t);
    if (!t || pthread_setspecific(own_key, t) != 0) {
        free(t);
        return NULL;
    }
    t->number = (unsigned long)pthread_self();
    pthread_mutex_lock(&pkg_users.lock);
    t->next = pkg_users.threads;
    pkg_users.threads = t;
    pthread_mutex_unlock(&pkg_users.lock);
    own = t;
    return t;
}

struct pkg_thread *pkg_entries_thread(void)
{
    return own ? own : make_own();
}

/* In a child, whose one thread has this. */
static void forget_other_threads(void)
{
    struct pkg_thread *next;

    for (struct pkg_thread *t = pkg_users.threads; t; t = next) {
        next = t->next;
        if (t != own)
            free(t);
    }
    pkg_users.threads = own;
    if (own)
        own->next = NULL;
}

/* ---- use ---- */

void pkg_entries_watch(void)
{
    pthread_mutex_lock(&pkg_users.lock);
    atomic_fetch_add(&pkg_users.watchers, 1);
}

void pkg_entries_unwatch(void)
{
    atomic_fetch_sub(&pkg_users.watchers, 1);
    pthread_mutex_unlock(&pkg_users.lock);
}

/* A forked child has visits of interpreters that its parent has. */
static int is_of(const struct pkg_visit *v, const struct pkg_entry *e)
{
    return v->entry == e && v->id == e->number;
}

int pkg_entries_is_inside(const struct pkg_entry *e)
{
    const struct pkg_visit *v = own ? atomic_load(&own->last) : NULL;

    while (v && !is_of(v, e))
        v = v->next;
    return v != NULL;
}

size_t pkg_entries_count_seen(const struct pkg_entry *e)
{
    size_t n = e->users;

    for (const struct pkg_thread *t = pkg_users.threads; t; t = t->next)
        for (const struct pkg_visit *v = atomic_load(&t->last); v; v = v->next)
            n += (size_t)is_of(v, e);
    return n;
}

size_t pkg_entries_count_users(const struct pkg_entry *e)
{
    size_t users;

    pkg_entries_watch();
    users = pkg_entries_count_seen(e);
    pkg_entries_unwatch();
    return users;
}

int pkg_entries_acquire(struct pkg_entry **out, uint64_t id, struct exti_error *err)
{
    int found, rc = pkg_entries_may_use(err);

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&pkg_users.lock);
    *out = pkg_entries_find(id);
    found = *out && !atomic_load(&(*out)->closing);
    if (found)
        (*out)->users++;
    pthread_mutex_unlock(&pkg_users.lock);
    return found ? 0 : pkg_entries_unknown(err, id);
}

void pkg_entries_release(struct pkg_entry *e)
{
    pthread_mutex_lock(&pkg_users.lock);
    e->users--;
    pthread_cond_broadcast(&pkg_users.changed);
    pthread_mutex_unlock(&pkg_users.lock);
}

/* ---- forks ---- */

void pkg_entries_forked(void)
{
    pkg_users.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pkg_users.changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    atomic_store(&pkg_users.watchers, 0);
    forget_other_threads();
    forget_entries();
}
