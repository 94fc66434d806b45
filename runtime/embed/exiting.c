/* A thread of the program that has called the context, or that which runs its jobs, leaves for the
 * frame of that call.  One that the context has started has no such place, and waits for ever. */
#include "runtime/embed/exiting.h"

#include <sched.h>
#include <setjmp.h>

#include "runtime/aborting.h"
#include "runtime/embed/threads.h"
#include "runtime/system.h"

/* A call of a context on this thread. */
struct frame {
    struct extipy_ctx *ctx;
    size_t depth; /* extipy__threads_depth */
    sigjmp_buf back;
    struct frame *outer;
};

static _Thread_local struct frame *innermost;

/* In a shared object each use of a thread-local's address is a call, of which this makes one. */
__attribute__((noinline)) static struct frame **own_innermost(void)
{
    return &innermost;
}

/* ---- calls ---- */

/* From 3.12 on the current state is the thread's, whichever interpreter it is of. */
static void let_go(const struct extipy_ctx *c)
{
    void *state = c->calls.current_state();

    if (state && (c->py.build.minor >= 12 || state == c->calls.PyGILState_GetThisThreadState()))
        c->py.PyEval_SaveThread();
}

/* Before, it is unknown whether another one than the thread's own is of an interpreter that the
 * thread has changed to, or another thread's. */
static int may_have_other_state(const struct extipy_ctx *c)
{
    void *state = c->calls.current_state();

    return c->py.build.minor < 12 && state && state != c->calls.PyGILState_GetThisThreadState() &&
           c->calls.PyInterpreterState_Next(c->calls.PyInterpreterState_Head());
}

struct pyobj *extipy__exiting_run(struct extipy_ctx *c,
                                  struct pyobj *(*run)(struct extipy_ctx *c, const void *what),
                                  const void *what, int *ended)
{
    struct frame **const in = own_innermost();
    struct pyobj *result;
    struct frame f; /* one by one, as `back` is large */

    f.ctx = c;
    f.depth = extipy__threads_depth();
    f.outer = *in;
    *ended = 0;
    *in = &f;
    if (sigsetjmp(f.back, 0) == 0) {
        result = run(c, what);
        *in = f.outer;
        return result;
    }
    *in = f.outer;
    *ended = 1;
    let_go(c);
    return NULL;
}

/* On the context's own thread, which has nothing else. */
static int is_own(const struct frame *f)
{
    return pthread_equal(f->ctx->keeper, pthread_self());
}

/* Whether the thread can leave the context for the frame of its call: it has entered nothing above
 * that, has not called this context below, and is in the main interpreter, or can tell. */
static int can_leave(struct extipy_ctx *c)
{
    const struct frame *f = innermost;

    if (!f || f->ctx != c || f->depth != extipy__threads_depth() || may_have_other_state(c) ||
        (!is_own(f) && !extipy__threads_entered_last(c)))
        return 0;
    while ((f = f->outer))
        if (f->ctx == c)
            return 0;
    return 1;
}

/* ---- the hooks ---- */

int extipy__can_exit(void *user, struct exti_ctx *loader, uint32_t where)
{
    struct extipy_ctx *c = user;

    (void)loader;
    if (!c->started)
        return 0;
    if (where & EXTI_EXIT_OWN_THREAD)
        return !innermost;
    return !(where & EXTI_EXIT_IN_HANDLER) && can_leave(c);
}

/* In a signal handler the lock may be the thread's own, or of one that waits for it. */
static int try_lock(struct extipy_ctx *c)
{
    for (int turns = 0; turns < 100000; turns++) {
        if (pthread_mutex_trylock(&c->lock) == 0)
            return 1;
        sched_yield();
    }
    return 0;
}

#define PATIENCE 2000000000 /* nanoseconds */

/* Threads of Python may look at the frames of this one, whose stack will be gone.  So it waits,
 * where it is, until none of them runs any more, but not for ever: others may be in native code. */
static void await_silence(struct extipy_ctx *c)
{
    let_go(c);
    pthread_mutex_lock(&c->lock);
    if (c->jobs.started && pthread_equal(c->jobs.worker, pthread_self()))
        c->jobs.running = NULL; /* it comes back */
    c->leaving++;
    pthread_cond_broadcast(&c->changed);
    extipy__exiting_await_gil(c);
    c->leaving--;
    pthread_mutex_unlock(&c->lock);
}

void extipy__exit(void *user, struct exti_ctx *loader, int status)
{
    struct extipy_ctx *c = user;
    int none = -1;

    (void)loader;
    extipy__context_watch(c);
    atomic_compare_exchange_strong(&c->exit_status, &none, status);
    if (try_lock(c)) {
        pthread_cond_broadcast(&c->changed);
        pthread_cond_broadcast(&c->jobs.work);
        pthread_mutex_unlock(&c->lock);
    }
    if (can_leave(c)) {
        if (!is_own(innermost))
            await_silence(c);
        siglongjmp(innermost->back, 1);
    }
    /* Those inside need it to leave. */
    let_go(c);
}

void extipy__tell_abort(void *user, struct exti_ctx *loader)
{
    (void)user;
    pyrt_aborting_tell(exti_ctx_name(loader));
}

/* ---- what follows ---- */

int extipy__exiting_due(const struct extipy_ctx *c)
{
    return extipy__has_exited(c) && !c->exit_seen && !extipy__has_emptied(c);
}

/* Returns the next thread's number in Python, which it has not been given yet; 0: none is left. */
static unsigned long next_inside(struct extipy_ctx *c)
{
    unsigned long thread;

    pthread_mutex_lock(&c->lock);
    thread = extipy__threads_take_unasked(c);
    pthread_mutex_unlock(&c->lock);
    return thread;
}

void *extipy__exiting_tend(struct extipy_ctx *c, void *state)
{
    unsigned long thread;

    c->exit_seen = 1;
    pthread_mutex_unlock(&c->lock);
    c->py.PyEval_RestoreThread(state);
    while ((thread = next_inside(c)))
        c->calls.PyThreadState_SetAsyncExc(thread, *c->py.system_exit);
    state = c->py.PyEval_SaveThread();
    pthread_mutex_lock(&c->lock);
    return state;
}

void *extipy__exiting_keep_gil(struct extipy_ctx *c, void *state)
{
    c->py.PyEval_RestoreThread(state);
    pthread_mutex_lock(&c->lock);
    c->gil_kept = 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int extipy__exiting_await_gil(struct extipy_ctx *c)
{
    const uint64_t end = pyrt_clock_after(PATIENCE);

    while (!c->gil_kept && pyrt_clock() < end)
        pyrt_cond_wait(&c->changed, &c->lock, end);
    return c->gil_kept;
}

static struct extipy_ctx *kept;
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;

void extipy__exited_keep(struct extipy_ctx *c)
{
    extipy__context_ref(c);
    pthread_mutex_lock(&kept_lock);
    c->next = kept;
    kept = c;
    pthread_mutex_unlock(&kept_lock);
}
