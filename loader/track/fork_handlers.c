#include "loader/track/fork_handlers.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

#include "base/mem.h"
#include "loader/track/context_threads.h"

struct fork_handler {
    const struct exti_ctx *ctx;
    const void *handle; /* the module's */
    void (*prepare)(void), (*parent)(void), (*child)(void);
    struct fork_handler *older, *newer;
};

/* Guards the list, from which nothing goes while a thread runs handlers.  Held during a fork, but
 * not while handlers run: they may register others. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fork_handler *newest, *oldest;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* `runs` */
static unsigned runs;                                     /* threads that run handlers */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int install_error;

static _Thread_local const struct exti_ctx *forking_ctx;

/* The calling thread's fork. */
static _Thread_local struct {
    bool runs;
    const struct exti_ctx *ctx; /* whose handlers run; NULL: those of all contexts */
    struct fork_handler *last;  /* the newest when the fork began; NULL: there was none */
} run;

static bool belongs_to_run(const struct fork_handler *h)
{
    return !run.ctx || h->ctx == run.ctx;
}

/* The lock is held, and let go while the handler runs. */
static void call_handler(void (*handler)(void))
{
    if (!handler)
        return;
    pthread_mutex_unlock(&lock);
    handler();
    pthread_mutex_lock(&lock);
}

/* A fork on a thread that is in no context, or in several, is the program's: all handlers run. */
static void before_fork(void)
{
    run.ctx = forking_ctx ? forking_ctx : exti__ctx_threads_only();
    run.runs = true;
    pthread_mutex_lock(&lock);
    runs++;
    run.last = newest;
    for (struct fork_handler *h = run.last; h; h = h->older)
        if (belongs_to_run(h))
            call_handler(h->prepare);
}

/* The lock is still held. */
static void after_fork(bool in_parent)
{
    for (struct fork_handler *h = run.last ? oldest : NULL; h; h = h == run.last ? NULL : h->newer)
        if (belongs_to_run(h))
            call_handler(in_parent ? h->parent : h->child);
    run.runs = false;
    runs--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void in_parent(void)
{
    after_fork(true);
}

/* The other threads, which may have been waiting, do not exist here. */
static void in_child(void)
{
    runs = 1;
    pthread_cond_init(&changed, NULL);
    after_fork(false);
}

static void install(void)
{
    install_error = pthread_atfork(before_fork, in_parent, in_child);
}

int exti__fork_handlers_install(void)
{
    pthread_once(&once, install);
    return install_error;
}

int exti__fork_handlers_add(const struct exti_module *m, void (*prepare)(void),
                            void (*parent)(void), void (*child)(void))
{
    struct fork_handler *h = exti__alloc(sizeof *h);

    if (!h)
        return ENOMEM;
    *h = (struct fork_handler){
        .ctx = m->ctx, .handle = m->handle, .prepare = prepare, .parent = parent, .child = child};
    pthread_mutex_lock(&lock);
    h->older = newest;
    *(newest ? &newest->newer : &oldest) = h;
    newest = h;
    pthread_mutex_unlock(&lock);
    return 0;
}

/* A handler may wait for the thread that closes its module. */
#define PATIENCE_S 5

/* Waits until no other thread runs handlers, which may be those of a context in which it is not.
 * The lock is held. */
static void await_runs(void)
{
    struct timespec end;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    while (runs > run.runs && !rc)
        rc = pthread_cond_timedwait(&changed, &lock, &end);
}

void exti__fork_handlers_drop(const struct exti_module *m)
{
    struct fork_handler *h;

    pthread_mutex_lock(&lock);
    for (h = oldest; h && (h->ctx != m->ctx || h->handle != m->handle); h = h->newer)
        ;
    if (h)
        await_runs();
    for (struct fork_handler *next; h; h = next) {
        next = h->newer;
        if (h->ctx != m->ctx || h->handle != m->handle)
            continue;
        *(h->older ? &h->older->newer : &oldest) = h->newer;
        *(h->newer ? &h->newer->older : &newest) = h->older;
        exti__free(h);
    }
    pthread_mutex_unlock(&lock);
}

const struct exti_ctx *exti__fork_handlers_for(const struct exti_ctx *ctx)
{
    const struct exti_ctx *before = forking_ctx;

    forking_ctx = ctx;
    return before;
}
