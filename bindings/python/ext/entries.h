/* Interpreters by number, and who uses them: those who have acquired one, and calls, each of which
 * its thread keeps in a list of its own.  A call is the usual thing, so it takes no lock here. */
#ifndef BINDINGS_PYTHON_EXT_ENTRIES_H
#define BINDINGS_PYTHON_EXT_ENTRIES_H

#include <pthread.h>

#include "bindings/python/ext/core.h"

/* The calls that a thread is in.  It alone changes them. */
struct pkg_thread {
    _Atomic(struct pkg_visit *) last;
    unsigned long number; /* as Python names it */
    struct pkg_thread *next;
};

extern struct pkg_users {
    pthread_mutex_t lock;   /* of `threads`, and of what entries and visits say */
    pthread_cond_t changed; /* a user less, or a visit that is not busy any more */
    struct pkg_thread *threads;
    /* Those who look at visits of other threads.  Who ends a visit looks at this afterwards: either
     * the visit was not seen, or its thread waits for the lock before the visit is gone. */
    atomic_int watchers;
    atomic_int stopped; /* the main interpreter ends, so nothing is opened or called any more */
} pkg_users;

int pkg_entries_fail(struct exti_error *err, int code, const char *message);
/* Fails if that has stopped. */
int pkg_entries_may_use(struct exti_error *err);
/* Fails, as no interpreter has that number. */
int pkg_entries_unknown(struct exti_error *err, uint64_t id);

/* Takes no lock: an entry is never freed.  NULL: there is none. */
struct pkg_entry *pkg_entries_find(uint64_t id);
/* One for a new interpreter, which is not found yet.  NULL: no memory. */
struct pkg_entry *pkg_entries_new(const struct pkg_opening *how);
void pkg_entries_publish(struct pkg_entry *e);
/* It has no interpreter any more. */
void pkg_entries_give_up(struct pkg_entry *e);
/* Calls the function for each that has one, and for the main interpreter's. */
void pkg_entries_each(void (*function)(void *user, const struct pkg_entry *e), void *user);

/* The calling thread's; NULL: no memory. */
struct pkg_thread *pkg_entries_thread(void);

/* As struct pkg_core has these. */
int pkg_entries_acquire(struct pkg_entry **out, uint64_t id, struct exti_error *err);
void pkg_entries_release(struct pkg_entry *e);
size_t pkg_entries_count_users(const struct pkg_entry *e);

/* Between these, with the lock held, other threads' visits may be looked at. */
void pkg_entries_watch(void);
void pkg_entries_unwatch(void);
size_t pkg_entries_count_seen(const struct pkg_entry *e); /* its users, for who watches */
/* Whether the calling thread is in a call of the interpreter. */
int pkg_entries_is_inside(const struct pkg_entry *e);

/* In a forked child: only the main interpreter is left, and this thread. */
void pkg_entries_forked(void);

#endif
