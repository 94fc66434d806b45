#include "bindings/python/ext/queues.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct item {
    struct pkg_message message;
    struct item *next;
};

struct queue {
    uint64_t id;
    size_t most, count; /* `most` 0: no limit */
    struct item *first, **end;
    size_t waiting; /* threads; it is not freed before they have left */
    int freed;
    pthread_cond_t changed;
    struct queue *next;
};

/* One lock for all of them: it is held for a few instructions only. */
static pthread_mutex_t queues_lock = PTHREAD_MUTEX_INITIALIZER;
static struct queue *queues;
static uint64_t last_queue;

static struct queue *find_queue(uint64_t id)
{
    struct queue *q = queues;

    while (q && q->id != id)
        q = q->next;
    return q;
}

int pkg_queue_new(uint64_t *id, size_t most)
{
    struct queue *q = calloc(1, sizeof *q);
    pthread_condattr_t attributes;

    if (!q)
        return EXTI_E_NOMEM;
    q->most = most;
    q->end = &q->first;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&q->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_lock(&queues_lock);
    *id = q->id = ++last_queue;
    q->next = queues;
    queues = q;
    pthread_mutex_unlock(&queues_lock);
    return 0;
}

static void free_queue(struct queue *q)
{
    struct item *i;

    while ((i = q->first)) {
        q->first = i->next;
        pkg_message_clear(&i->message);
        free(i);
    }
    pthread_cond_destroy(&q->changed);
    free(q);
}

/* Ends a wait; returns the queue if it was freed meanwhile and this was the last. */
static struct queue *end_wait(struct queue *q)
{
    q->waiting--;
    return q->freed && !q->waiting ? q : NULL;
}

int pkg_queue_free(uint64_t id)
{
    struct queue **link = &queues, *q;
    int last = 0;

    pthread_mutex_lock(&queues_lock);
    while (*link && (*link)->id != id)
        link = &(*link)->next;
    q = *link;
    if (q) {
        *link = q->next;
        q->freed = 1;
        last = !q->waiting;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&queues_lock);
    if (last)
        free_queue(q);
    return q ? 0 : PKG_E_UNKNOWN;
}

static int is_full(const struct queue *q)
{
    return q->most && q->count >= q->most;
}

static int is_empty(const struct queue *q)
{
    return !q->first;
}

static struct timespec deadline_in(int64_t nanoseconds)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(nanoseconds / 1000000000);
    at.tv_nsec += (long)(nanoseconds % 1000000000);
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

/* With the lock held: waits as long as `hinders`, and gives the queue. */
static int await_queue(struct queue **out, uint64_t id, int64_t nanoseconds,
                       int (*hinders)(const struct queue *))
{
    struct timespec until = deadline_in(nanoseconds);
    struct queue *q = find_queue(id), *last;
    int rc = 0;

    if (!q)
        return PKG_E_UNKNOWN;
    q->waiting++;
    while (rc == 0 && !q->freed && hinders(q))
        if (nanoseconds <= 0 || pthread_cond_timedwait(&q->changed, &queues_lock, &until))
            rc = !q->freed && hinders(q) ? EXTIPY_E_TIMEOUT : 0;
    if (q->freed)
        rc = PKG_E_UNKNOWN;
    last = end_wait(q);
    if (last)
        free_queue(last);
    else if (rc == 0)
        *out = q;
    return rc;
}

int pkg_queue_put(uint64_t id, const struct pkg_message *message, int64_t nanoseconds)
{
    struct item *i = calloc(1, sizeof *i);
    struct queue *q;
    int rc;

    if (!i)
        return EXTI_E_NOMEM;
    i->message = *message;
    pthread_mutex_lock(&queues_lock);
    rc = await_queue(&q, id, nanoseconds, is_full);
    if (rc == 0) {
        *q->end = i;
        q->end = &i->next;
        q->count++;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&queues_lock);
    if (rc < 0)
        free(i);
    return rc;
}

int pkg_queue_get(uint64_t id, struct pkg_message *message, int64_t nanoseconds)
{
    struct item *i = NULL;
    struct queue *q;
    int rc;

    pthread_mutex_lock(&queues_lock);
    rc = await_queue(&q, id, nanoseconds, is_empty);
    if (rc == 0) {
        i = q->first;
        q->first = i->next;
        if (!q->first)
            q->end = &q->first;
        q->count--;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&queues_lock);
    if (i)
        *message = i->message;
    free(i);
    return rc;
}

int pkg_queue_count(uint64_t id, size_t *count, size_t *most)
{
    struct queue *q;

    pthread_mutex_lock(&queues_lock);
    q = find_queue(id);
    if (q) {
        *count = q->count;
        *most = q->most;
    }
    pthread_mutex_unlock(&queues_lock);
    return q ? 0 : PKG_E_UNKNOWN;
}

void pkg_queue_forked(void)
{
    queues_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    queues = NULL;
}
