#include "bindings/python/ext/core.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bindings/python/ext/interrupt.h"
#include "bindings/python/ext/queues.h"

/* The main interpreter comes first, and is never closed. */
static struct pkg_entry main_entry = {.id = PKG_MAIN};
static struct pkg_entry *entries = &main_entry;
static uint64_t last_id = PKG_MAIN;
static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t entries_changed = PTHREAD_COND_INITIALIZER;

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
    installation_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    main_entry = (struct pkg_entry){.id = PKG_MAIN};
    pkg_queue_forked();
}

/* With the lock held. */
static struct pkg_entry *find_entry(uint64_t id)
{
    struct pkg_entry *e = entries;

    while (e && e->id != id)
        e = e->next;
    return e;
}

static struct pkg_entry *new_entry(struct extipy_ctx *ctx)
{
    struct pkg_entry *e = calloc(1, sizeof *e);

    if (!e)
        return NULL;
    e->ctx = ctx;
    pthread_mutex_lock(&entries_lock);
    e->id = ++last_id;
    e->next = main_entry.next;
    main_entry.next = e;
    pthread_mutex_unlock(&entries_lock);
    return e;
}

int pkg_core_open(uint64_t *id, struct exti_error *err)
{
    struct extipy_opts opts = {
        .size = sizeof opts, .rules = rules, .rule_count = sizeof rules / sizeof *rules};
    struct extipy_ctx *ctx;
    struct pkg_entry *e;
    int rc;

    if (atomic_load(&stopped))
        return core_fail(err, EXTIPY_E_CLOSED, "the main interpreter is ending");
    rc = extipy_open(&ctx, installation, &opts, err);
    if (rc < 0)
        return rc;
    e = new_entry(ctx);
    if (!e) {
        extipy_close(ctx, NULL, NULL, NULL, NULL);
        return core_fail(err, EXTI_E_NOMEM, "out of memory");
    }
    *id = e->id;
    return 0;
}

int pkg_core_start(uint64_t id, const char *source, struct exti_error *err)
{
    struct extipy_call call = {
        .size = sizeof call, .function = "extisolate._dispatch:dispatcher", .stay = 1};
    struct extipy_value value = {.size = sizeof value};
    struct extipy_values *result;
    struct pkg_entry *e;
    int rc;

    pthread_mutex_lock(&entries_lock);
    e = find_entry(id);
    pthread_mutex_unlock(&entries_lock);
    if (!e || !e->ctx)
        return unknown(err, id);
    rc = extipy_exec(e->ctx, source, NULL, err);
    if (rc == 0)
        rc = extipy_call(e->ctx, &call, &result, NULL, err);
    if (rc < 0)
        return rc;
    extipy_value(result, 1, &value);
    pthread_mutex_lock(&entries_lock);
    e->dispatch = extipy_object_keep(value.object);
    pthread_mutex_unlock(&entries_lock);
    extipy_values_free(result);
    return 0;
}

int pkg_core_acquire(struct pkg_entry **out, uint64_t id, struct exti_error *err)
{
    struct pkg_entry *e;

    if (atomic_load(&stopped))
        return core_fail(err, EXTIPY_E_CLOSED, "the main interpreter is ending");
    pthread_mutex_lock(&entries_lock);
    e = find_entry(id);
    if (e && !e->closing)
        e->users++;
    else
        e = NULL;
    pthread_mutex_unlock(&entries_lock);
    if (!e)
        return unknown(err, id);
    *out = e;
    return 0;
}

void pkg_core_release(struct pkg_entry *e)
{
    pthread_mutex_lock(&entries_lock);
    e->users--;
    if (e->closing && !e->users)
        pthread_cond_broadcast(&entries_changed);
    pthread_mutex_unlock(&entries_lock);
}

/* Whether the entry can be closed, by now or after a wait; with the lock held. */
static int may_close(const struct pkg_entry *e, uint64_t id, int wait, struct exti_error *err)
{
    if (!e || e->closing)
        return unknown(err, id);
    if (!e->ctx)
        return core_fail(err, EXTIPY_E_PLACE, "the main interpreter cannot be closed");
    if (e->users && !wait)
        return core_fail(err, EXTIPY_E_STATE, "the interpreter is running");
    if (e->users && pkg_interrupt_inside(e->ctx))
        return core_fail(err, EXTIPY_E_PLACE, "this thread is in a call of the interpreter");
    return 0;
}

/* Takes an entry out of the list when nobody uses it any more. */
static int remove_entry(struct pkg_entry **out, uint64_t id, int wait, struct exti_error *err)
{
    struct pkg_entry **link = &entries, *e;
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

int pkg_core_close(uint64_t id, int wait, struct extipy_closed *out, struct exti_error *err)
{
    struct pkg_entry *e;
    int rc = remove_entry(&e, id, wait, err);

    if (rc < 0)
        return rc;
    extipy_object_release(e->dispatch);
    rc = extipy_close(e->ctx, NULL, NULL, out, err);
    free(e);
    return rc;
}

size_t pkg_core_list(uint64_t *ids, size_t room)
{
    size_t n = 0;

    pthread_mutex_lock(&entries_lock);
    for (const struct pkg_entry *e = entries; e; e = e->next) {
        if (e->ctx && (!e->dispatch || e->closing))
            continue;
        if (n < room)
            ids[n] = e->id;
        n++;
    }
    pthread_mutex_unlock(&entries_lock);
    return n;
}
