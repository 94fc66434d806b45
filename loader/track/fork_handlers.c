#include "loader/track/fork_handlers.h"

#include <errno.h>
#include <stdbool.h>

#include "base/mem.h"
#include "loader/process/fork_guard.h"
#include "loader/track/calls.h"
#include "loader/track/context_threads.h"
#include "loader/track/fork_lock.h"

struct fork_handler {
    const struct exti_ctx *ctx;
    const void *handle;   /* the module's */
    unsigned long number; /* from 1 on, in the order in which they were added */
    void (*prepare)(void), (*parent)(void), (*child)(void);
    struct fork_handler *older, *newer;
};

/* Guards the list, from which nothing goes while a thread runs handlers.  Not held while they run,
 * as they may register others, nor while a fork waits for other threads; but when it happens. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fork_handler *newest, *oldest;
static unsigned long added;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* `runs` */
static unsigned runs;                                     /* threads that run handlers */
static pthread_once_t once = PTHREAD_ONCE_INIT, list_once = PTHREAD_ONCE_INIT;
static int install_error, list_install_error;

static _Thread_local const struct exti_ctx *forking_ctx;

/* The calling thread's fork. */
static _Thread_local struct {
    bool runs;                  /* handlers */
    const struct exti_ctx *ctx; /* whose handlers run; NULL: those of all contexts */
    unsigned long last;         /* the newest when the fork began; 0: there was none */
} run;

static bool belongs_to_run(const struct fork_handler *h)
{
    return h->number <= run.last && (!run.ctx || h->ctx == run.ctx);
}

static void begin_run(void)
{
    exti__fork_lock(&lock);
    run.runs = true;
    runs++;
}

static void end_run(void)
{
    run.runs = false;
    runs--;
    pthread_cond_broadcast(&changed);
    exti__fork_unlock(&lock);
}

/* The lock is held, and let go while the handler runs. */
static void call_handler(void (*handler)(void))
{
    if (!handler)
        return;
    exti__fork_unlock(&lock);
    handler();
    exti__fork_lock(&lock);
}

/* A fork on a thread that is in no context, or in several, is the program's: all handlers run. */
static void before_fork(void)
{
    run.ctx = forking_ctx ? forking_ctx : exti__ctx_threads_only();
    begin_run();
    run.last = added;
    for (struct fork_handler *h = newest; h; h = h->older)
        if (belongs_to_run(h))
            call_handler(h->prepare);
    end_run();
    if (run.ctx)
        exti__calls_begin_fork(run.ctx);
}

static void after_fork(bool in_parent)
{
    exti__calls_end_fork();
    begin_run();
    for (struct fork_handler *h = oldest; h; h = h->newer)
        if (belongs_to_run(h))
            call_handler(in_parent ? h->parent : h->child);
    end_run();
}

static void in_parent(void)
{
    after_fork(true);
}

static void in_child(void)
{
    after_fork(false);
}

/* ---- the list, while the process is forked ---- */

static void lock_list(void)
{
    exti__fork_lock(&lock);
}

static void unlock_list(void)
{
    exti__fork_unlock(&lock);
}

/* The other threads, which may have been waiting, do not exist here. */
static void renew_list(void)
{
    runs = 0;
    pthread_cond_init(&changed, NULL);
    exti__fork_unlock(&lock);
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

static void install_for_list(void)
{
    list_install_error = pthread_atfork(lock_list, unlock_list, renew_list);
}

int exti__fork_handlers_survive_forks(void)
{
    pthread_once(&list_once, install_for_list);
    return list_install_error;
}

int exti__fork_handlers_add(const struct exti_module *m, void (*prepare)(void),
                            void (*parent)(void), void (*child)(void))
{
    struct fork_handler *h = exti__alloc(sizeof *h);

    if (!h)
        return ENOMEM;
    *h = (struct fork_handler){
        .ctx = m->ctx, .handle = m->handle, .prepare = prepare, .parent = parent, .child = child};
    exti__fork_lock(&lock);
    h->number = ++added;
    h->older = newest;
    *(newest ? &newest->newer : &oldest) = h;
    newest = h;
    exti__fork_unlock(&lock);
    return 0;
}

/* Waits until no other thread runs handlers, which may be those of a context in which it is not;
 * not for ever, as a handler may wait for the thread that closes its module.  The lock is held. */
static void await_runs(void)
{
    const struct timespec end = exti__fork_patience_end();
    int rc = 0;

    while (runs > run.runs && !rc)
        rc = pthread_cond_timedwait(&changed, &lock, &end);
}

void exti__fork_handlers_drop(const struct exti_module *m)
{
    struct fork_handler *h;

    exti__fork_lock(&lock);
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
    exti__fork_unlock(&lock);
}

const struct exti_ctx *exti__fork_handlers_for(const struct exti_ctx *ctx)
{
    const struct exti_ctx *before = forking_ctx;

    forking_ctx = ctx;
    return before;
}

const struct exti_ctx *exti__fork_handlers_ctx(void)
{
    return forking_ctx;
}
