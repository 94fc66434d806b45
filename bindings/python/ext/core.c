#include "bindings/python/ext/core.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/python/ext/queues.h"

/* The main interpreter is never closed. */
static struct pkg_entry main_entry = {.id = PKG_MAIN};
/* Lists by the remainder of the number, as each call looks for one of what may be a thousand. */
#define LISTS 64
static struct pkg_entry *entries[LISTS] = {[PKG_MAIN] = &main_entry};
static uint64_t last_id = PKG_MAIN;
static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t entries_changed = PTHREAD_COND_INITIALIZER;
static struct pkg_visit *visits; /* with the entries' lock */
static pthread_cond_t sent = PTHREAD_COND_INITIALIZER;
static atomic_ulong rounds; /* SIGINTs so far */

struct pkg_heaps pkg_core_heaps = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                   .collecting = PTHREAD_MUTEX_INITIALIZER,
                                   .most = PKG_COLLECT_FROM};

static struct extipy_python *installation;
static pthread_mutex_t installation_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int stopped;

/* All contexts have this one library, and what it needs comes with it. */
static const struct exti_rule rules[] = {{.glob = "libextisolate*.so*", .share = 1}};

static int core_fail(struct exti_error *err, int code, const char *message)
{
    if (err) {
        *err = (struct exti_error){.code = code, .offset = EXTI_NO_OFFSET};
        snprintf(err->message, sizeof err->message, "%s", message);
    }
    return code;
}

static int unknown(struct exti_error *err, uint64_t id)
{
    char message[64];

    snprintf(message, sizeof message, "interpreter %llu not found", (unsigned long long)id);
    return core_fail(err, PKG_E_UNKNOWN, message);
}

int pkg_core_find(const char *executable, const struct extipy_python **out, struct exti_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&installation_lock);
    if (!installation)
        rc = extipy_find(&installation, executable, err);
    if (rc == 0)
        *out = installation;
    pthread_mutex_unlock(&installation_lock);
    return rc;
}

void pkg_core_stop(void)
{
    atomic_store(&stopped, 1);
}

void pkg_core_forked(void)
{
    entries_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    entries_changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    sent = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    visits = NULL;
    installation_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    main_entry = (struct pkg_entry){.id = PKG_MAIN};
    memset(entries, 0, sizeof entries);
    entries[PKG_MAIN] = &main_entry;
    pkg_queue_forked();
    pkg_core_heaps.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pkg_core_heaps.collecting = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pkg_core_heaps.first = NULL;
    atomic_store(&pkg_core_heaps.count, 0);
}

/* With the lock held. */
static struct pkg_entry *find_entry(uint64_t id)
{
    struct pkg_entry *e = entries[id % LISTS];

    while (e && e->id != id)
        e = e->next;
    return e;
}

/* Without an id, and in no list. */
static struct pkg_entry *new_entry(const struct pkg_opening *how)
{
    struct pkg_entry *e = calloc(1, sizeof *e);

    if (e) {
        e->streams = how->streams;
        e->owner = how->owner;
    }
    return e;
}

/* A stream that nobody is called with is the process's. */
static void set_output(struct extipy_opts *opts, extipy_output_fn output, struct pkg_entry *e)
{
    if (!e->streams)
        return;
    opts->output = output;
    opts->output_user = e;
    opts->stdout_fd = e->streams & EXTIPY_STDOUT ? 0 : 1;
    opts->stderr_fd = e->streams & EXTIPY_STDERR ? 0 : 2;
}

/* Gives it a number unless it has one. */
static void add_entry(struct pkg_entry *e)
{
    struct pkg_entry **list;

    pthread_mutex_lock(&entries_lock);
    if (!e->id)
        e->id = ++last_id;
    list = &entries[e->id % LISTS];
    e->next = *list;
    *list = e;
    pthread_mutex_unlock(&entries_lock);
}

int pkg_core_open(uint64_t *id, const struct pkg_opening *how, extipy_output_fn output,
                  struct exti_error *err)
{
    struct extipy_opts opts = {.size = sizeof opts,
                               .rules = rules,
                               .rule_count = sizeof rules / sizeof *rules,
                               .settings = how->settings,
                               .setting_count = how->setting_count,
                               .on_caller = how->on_caller,
                               .flags = how->on_caller ? EXTI_CTX_ENTER_DIRECTORY : 0};
    struct pkg_entry *e;
    int rc;

    if (atomic_load(&stopped))
        return core_fail(err, EXTIPY_E_CLOSED, "the main interpreter is ending");
    e = new_entry(how);
    if (!e)
        return core_fail(err, EXTI_E_NOMEM, "out of memory");
    set_output(&opts, output, e);
    rc = extipy_open(&e->ctx, installation, &opts, err);
    if (rc < 0) {
        free(e);
        return rc;
    }
    add_entry(e);
    *id = e->id;
    return 0;
}

int pkg_core_start(uint64_t id, const char *source, struct exti_error *err)
{
    struct pkg_entry *e;
    int rc;

    pthread_mutex_lock(&entries_lock);
    e = find_entry(id);
    pthread_mutex_unlock(&entries_lock);
    if (!e || !e->ctx)
        return unknown(err, id);
    rc = extipy_exec(e->ctx, source, NULL, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&entries_lock);
    e->ready = 1;
    pthread_mutex_unlock(&entries_lock);
    return 0;
}

/* ---- use ---- */

/* With the lock held.  NULL: it is none that can be used, or not yet called. */
static struct pkg_entry *use(uint64_t id, int call)
{
    struct pkg_entry *e = find_entry(id);

    if (!e || e->closing || (call && e->ctx && !e->ready))
        return NULL;
    e->users++;
    return e;
}

/* With the lock held. */
static void unuse(struct pkg_entry *e)
{
    e->users--;
    if (e->closing && !e->users)
        pthread_cond_broadcast(&entries_changed);
}

static int acquire(struct pkg_entry **out, uint64_t id, struct pkg_visit *visit,
                   struct exti_error *err)
{
    if (atomic_load(&stopped))
        return core_fail(err, EXTIPY_E_CLOSED, "the main interpreter is ending");
    pthread_mutex_lock(&entries_lock);
    *out = use(id, visit != NULL);
    if (*out && visit) {
        visit->round = atomic_load(&rounds);
        visit->next = visits;
        visit->link = &visits;
        if (visit->next)
            visit->next->link = &visit->next;
        visits = visit;
    }
    pthread_mutex_unlock(&entries_lock);
    return *out ? 0 : unknown(err, id);
}

int pkg_core_acquire(struct pkg_entry **out, uint64_t id, struct exti_error *err)
{
    return acquire(out, id, NULL, err);
}

void pkg_core_release(struct pkg_entry *e)
{
    pthread_mutex_lock(&entries_lock);
    unuse(e);
    pthread_mutex_unlock(&entries_lock);
}

size_t pkg_core_count_users(const struct pkg_entry *e)
{
    size_t users;

    pthread_mutex_lock(&entries_lock);
    users = e->users;
    pthread_mutex_unlock(&entries_lock);
    return users;
}

/* ---- visits ---- */

int pkg_core_begin_visit(struct pkg_visit *v, uint64_t id, struct exti_error *err)
{
    v->thread = (unsigned long)pthread_self();
    v->busy = 0;
    v->sent = 0;
    return acquire(&v->entry, id, v, err);
}

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

void pkg_core_end_visit(struct pkg_visit *v)
{
    pthread_mutex_lock(&entries_lock);
    while (v->busy)
        pthread_cond_wait(&sent, &entries_lock);
    *v->link = v->next;
    if (v->next)
        v->next->link = v->link;
    if (v->sent) {
        /* It may have come too late for this call, and must not hit the next one. */
        pthread_mutex_unlock(&entries_lock);
        tell(v->entry, "extisolate._dispatch:calm", v->thread);
        pthread_mutex_lock(&entries_lock);
    }
    unuse(v->entry);
    pthread_mutex_unlock(&entries_lock);
}

/* With the lock held. */
static int is_inside(const struct pkg_entry *e)
{
    unsigned long self = (unsigned long)pthread_self();
    const struct pkg_visit *v = visits;

    while (v && (v->entry != e || v->thread != self))
        v = v->next;
    return v != NULL;
}

unsigned long pkg_core_interrupts(void)
{
    return atomic_load(&rounds);
}

void pkg_core_signalled(void)
{
    atomic_fetch_add(&rounds, 1);
}

/* With the lock held. */
static struct pkg_visit *next_visit(unsigned long this_round)
{
    struct pkg_visit *v = visits;

    while (v && (!v->entry->ctx || v->round >= this_round))
        v = v->next;
    if (v) {
        v->round = this_round;
        v->busy = 1;
    }
    return v;
}

/* A thread that is in several contexts is interrupted in each. */
void pkg_core_interrupt(void)
{
    unsigned long this_round = atomic_load(&rounds);
    struct pkg_visit *v;

    pthread_mutex_lock(&entries_lock);
    while ((v = next_visit(this_round))) {
        pthread_mutex_unlock(&entries_lock);
        tell(v->entry, "extisolate._dispatch:interrupt", v->thread);
        extipy_detach(v->entry->ctx, NULL); /* or this thread would keep the context mapped */
        pthread_mutex_lock(&entries_lock);
        v->busy = 0;
        v->sent = 1;
        pthread_cond_broadcast(&sent);
    }
    pthread_mutex_unlock(&entries_lock);
}

/* ---- the end ---- */

/* Whether the entry can be closed, by now or after a wait; with the lock held. */
static int may_close(const struct pkg_entry *e, uint64_t id, int wait, struct exti_error *err)
{
    if (!e || e->closing)
        return unknown(err, id);
    if (!e->ctx)
        return core_fail(err, EXTIPY_E_PLACE, "the main interpreter cannot be closed");
    if (e->users && !wait)
        return core_fail(err, EXTIPY_E_STATE, "the interpreter is running");
    if (e->users && is_inside(e))
        return core_fail(err, EXTIPY_E_PLACE, "this thread is in a call of the interpreter");
    return 0;
}

/* Takes an entry out of the list when nobody uses it any more. */
static int remove_entry(struct pkg_entry **out, uint64_t id, int wait, struct exti_error *err)
{
    struct pkg_entry **link = &entries[id % LISTS], *e;
    int rc;

    pthread_mutex_lock(&entries_lock);
    e = find_entry(id);
    rc = may_close(e, id, wait, err);
    if (rc == 0) {
        e->closing = 1;
        while (e->users)
            pthread_cond_wait(&entries_changed, &entries_lock);
        while (*link != e)
            link = &(*link)->next;
        *link = e->next;
        *out = e;
    }
    pthread_mutex_unlock(&entries_lock);
    return rc;
}

int pkg_core_close(uint64_t id, int wait, struct pkg_report *report, struct extipy_closed *out,
                   struct exti_error *err)
{
    struct pkg_entry *e;
    int rc = remove_entry(&e, id, wait, err);

    if (rc < 0)
        return rc;
    rc = extipy_close(e->ctx, pkg_report_add, report, out, err);
    if (rc == EXTI_E_BUSY || rc == EXTIPY_E_PLACE) {
        e->closing = 0;
        add_entry(e);
        return rc;
    }
    pkg_heap_abandon(&pkg_core_heaps, id);
    free(e);
    return rc;
}

size_t pkg_core_list(uint64_t *ids, size_t room)
{
    size_t n = 0;

    pthread_mutex_lock(&entries_lock);
    for (size_t i = 0; i < LISTS; i++)
        for (const struct pkg_entry *e = entries[i]; e; e = e->next) {
            if (e->ctx && (!e->ready || e->closing))
                continue;
            if (n < room)
                ids[n] = e->id;
            n++;
        }
    pthread_mutex_unlock(&entries_lock);
    return n;
}
