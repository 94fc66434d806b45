#include "loader/store/write_queue.h"

#ifndef _WIN32
#include <signal.h>
#include <unistd.h>
#endif

#include "base/error.h"
#include "base/mem.h"
#include "loader/store/store_write.h"

/* Jobs per thread that may wait: each holds its file mapped. */
#define LOOK_AHEAD 16

#define MAX_THREADS 256

static size_t processor_count(void)
{
#ifdef _WIN32
    int n = pthread_num_processors_np();
#else
    long n = sysconf(_SC_NPROCESSORS_ONLN);
#endif

    return n > 0 ? (size_t)n : 1;
}

int exti__write_queue_init(struct exti_write_queue *q, const struct exti_store *s, size_t threads,
                           struct exti_error *err)
{
    *q = (struct exti_write_queue){.store = s};
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->more, NULL);
    pthread_cond_init(&q->done, NULL);
    if (!threads)
        threads = processor_count();
    q->helper_max = (threads < MAX_THREADS ? threads : MAX_THREADS) - 1;
    q->helpers = exti__calloc(q->helper_max, sizeof *q->helpers);
    return q->helpers ? 0 : exti__fail_nomem(err);
}

void exti__write_queue_free(struct exti_write_queue *q)
{
    exti__free(q->helpers);
    pthread_cond_destroy(&q->more);
    pthread_cond_destroy(&q->done);
    pthread_mutex_destroy(&q->lock);
}

/* Takes the first job off the queue; NULL when it is empty.  The lock is held. */
static struct exti_write_job *pop_job(struct exti_write_queue *q)
{
    struct exti_write_job *j = q->head;

    if (j) {
        q->head = j->next;
        q->queued--;
    }
    return j;
}

/* Called with the lock held; lets go of it while it writes. */
static void write_job(struct exti_write_queue *q, struct exti_write_job *j)
{
    struct exti_error err = {0};
    int rc;

    pthread_mutex_unlock(&q->lock);
    rc = exti__store_write(q->store, j->making.im, &j->making.edits, NULL, &j->making.e, &err);
    exti__making_clear(&j->making);
    pthread_mutex_lock(&q->lock);
    j->rc = rc;
    j->err = err;
    j->done = true;
    pthread_cond_signal(&q->done);
}

static void *helper_main(void *user)
{
    struct exti_write_queue *q = user;
    struct exti_write_job *j;

    pthread_mutex_lock(&q->lock);
    while (!q->closing || q->head) {
        j = pop_job(q);
        if (j)
            write_job(q, j);
        else
            pthread_cond_wait(&q->more, &q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* Helpers block all signals: those are for the program's own threads.  If none can be started,
 * the caller writes everything. */
static void start_helper(struct exti_write_queue *q)
{
#ifndef _WIN32
    sigset_t all, was;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
#endif
    if (pthread_create(&q->helpers[q->helper_count], NULL, helper_main, q) == 0)
        q->helper_count++;
    else
        q->helper_max = q->helper_count;
#ifndef _WIN32
    pthread_sigmask(SIG_SETMASK, &was, NULL);
#endif
}

bool exti__write_queue_write_one(struct exti_write_queue *q)
{
    struct exti_write_job *j;

    pthread_mutex_lock(&q->lock);
    j = pop_job(q);
    if (j)
        write_job(q, j);
    pthread_mutex_unlock(&q->lock);
    return j != NULL;
}

void exti__write_queue_add(struct exti_write_queue *q, struct exti_write_job *j)
{
    /* The largest file first, so that in the end nobody waits for a thread that began it last. */
    struct exti_write_job **at = &q->head;
    bool full;

    pthread_mutex_lock(&q->lock);
    while (*at && (*at)->making.im->bytes.n >= j->making.im->bytes.n)
        at = &(*at)->next;
    j->next = *at;
    *at = j;
    full = ++q->queued > LOOK_AHEAD * (q->helper_max + 1);
    pthread_cond_signal(&q->more);
    pthread_mutex_unlock(&q->lock);
    if (q->helper_count < q->helper_max)
        start_helper(q);
    if (full || !q->helper_max)
        exti__write_queue_write_one(q);
}

bool exti__write_queue_is_done(struct exti_write_queue *q, const struct exti_write_job *j)
{
    bool done;

    pthread_mutex_lock(&q->lock);
    done = j->done;
    pthread_mutex_unlock(&q->lock);
    return done;
}

void exti__write_queue_wait(struct exti_write_queue *q, const struct exti_write_job *j)
{
    pthread_mutex_lock(&q->lock);
    while (!j->done)
        pthread_cond_wait(&q->done, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

void exti__write_queue_abandon(struct exti_write_queue *q)
{
    struct exti_write_job *j;

    pthread_mutex_lock(&q->lock);
    while ((j = pop_job(q))) {
        exti__making_clear(&j->making);
        j->rc = EXTI_E_BUSY;
        j->done = true;
    }
    pthread_mutex_unlock(&q->lock);
}

void exti__write_queue_join(struct exti_write_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closing = true;
    pthread_cond_broadcast(&q->more);
    pthread_mutex_unlock(&q->lock);
    for (size_t i = 0; i < q->helper_count; i++)
        pthread_join(q->helpers[i], NULL);
    q->helper_count = 0;
}
