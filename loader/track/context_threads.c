/* One table for the process, as a thread may be of several contexts. */
#define _GNU_SOURCE /* syscall */
#include "loader/track/context_threads.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/glob.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/track/address_map.h"
#include "loader/track/fork_lock.h"
#include "loader/track/thread_description.h"

enum thread_kind {
    STARTED, /* by a copy */
    VALUE,   /* has a value under a key of the context */
    /* Had one when the context deleted the key: CPython does so with the key by which it knows the
     * threads that are in it. */
    INSIDE
};

/* What the library that has started a thread does about it in the end. */
enum thread_end {
    NOTHING,
    JOINS, /* joins it when it is unloaded */
    STOPS  /* tells it to end in the destructors that a process runs at exit */
};

struct exti_ctx_thread {
    enum thread_kind kind;
    const struct exti_ctx *ctx; /* NULL once that is freed */
    pid_t tid;                  /* 0: not running yet */
    pthread_key_t key;          /* VALUE */
    uintptr_t start;            /* STARTED: the routine */
    bool by_api, left;          /* STARTED: the routine is the API library's; has returned */
    enum thread_end end;        /* STARTED */
    bool stopped;               /* STARTED: those destructors are run */
    struct exti_ctx_thread *next;
};

/* Guards the table.  Taken with no lock of the library held; the address map's may be taken under
 * it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct exti_ctx_thread *threads;
static size_t count, sweep_at = 64;
static atomic_ulong detachings;

/* The context whose copy has started the thread; compared only. */
static _Thread_local const struct exti_ctx *starter;

/* Another thread may hold the lock at the moment of a fork, and does not exist in the child to
 * release it. */
static void lock_threads(void)
{
    exti__fork_lock(&lock);
}

static void unlock_threads(void)
{
    exti__fork_unlock(&lock);
}

/* The thread has another number there. */
static void unlock_in_child(void)
{
    atomic_fetch_add(&detachings, 1);
    exti__fork_unlock(&lock);
}

static void install_thread_fork_handlers(void)
{
    pthread_atfork(lock_threads, unlock_threads, unlock_in_child);
}

void exti__ctx_threads_survive_forks(void)
{
    pthread_once(&fork_once, install_thread_fork_handlers);
}

static pid_t this_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* True also while the thread's thread-specific destructors run, whose end no routine of its own can
 * tell. */
static bool is_alive(const struct exti_ctx_thread *t)
{
    return t->tid == 0 || syscall(SYS_tgkill, getpid(), t->tid, 0) == 0;
}

/* ---- the table; the lock is held ---- */

static void remove_thread(struct exti_ctx_thread **link)
{
    struct exti_ctx_thread *t = *link;

    *link = t->next;
    exti__free(t);
    count--;
}

static void remove_dead_threads(void)
{
    for (struct exti_ctx_thread **link = &threads; *link;)
        if (is_alive(*link))
            link = &(*link)->next;
        else
            remove_thread(link);
    sweep_at = count * 2 + 64;
}

static struct exti_ctx_thread **find_thread(enum thread_kind kind, const struct exti_ctx *ctx,
                                            pid_t tid, pthread_key_t key)
{
    struct exti_ctx_thread **link = &threads;

    while (*link && !((*link)->kind == kind && (*link)->ctx == ctx && (*link)->tid == tid &&
                      (*link)->key == key))
        link = &(*link)->next;
    return link;
}

static struct exti_ctx_thread *add_thread(enum thread_kind kind, const struct exti_ctx *ctx,
                                          pid_t tid, pthread_key_t key)
{
    struct exti_ctx_thread *t = exti__calloc(1, sizeof *t);

    if (!t)
        return NULL;
    if (count >= sweep_at)
        remove_dead_threads();
    *t =
        (struct exti_ctx_thread){.kind = kind, .ctx = ctx, .tid = tid, .key = key, .next = threads};
    threads = t;
    count++;
    return t;
}

/* ---- threads that copies start ---- */

/* Libraries that are known to end their threads.  The engine of torch's derivatives is an object,
 * which is destroyed at exit (torch::autograd::Engine::stop). */
static const struct {
    const char *file;
    enum thread_end end;
} enders[] = {{"*openblas*", JOINS}, {"libtorch_cpu.so*", STOPS}};

static enum thread_end end_by(const char *path)
{
    for (size_t i = 0; i < sizeof enders / sizeof *enders; i++)
        if (exti__glob_matches(enders[i].file, exti__base_name(path), false))
            return enders[i].end;
    return NOTHING;
}

struct exti_ctx_thread *exti__ctx_thread_new(const struct exti_ctx *ctx, uintptr_t start)
{
    struct exti_module m;
    const bool by_copy = exti__address_map_find(start, &m);
    struct exti_ctx_thread *t;

    exti__fork_lock(&lock);
    t = add_thread(STARTED, ctx, 0, 0);
    if (t) {
        t->start = start;
        t->by_api = by_copy && ctx->api && m.handle == ctx->api->handle;
        t->end = by_copy ? end_by(m.original) : NOTHING;
    }
    exti__fork_unlock(&lock);
    return t;
}

void exti__ctx_thread_cancel(struct exti_ctx_thread *t)
{
    struct exti_ctx_thread **link = &threads;

    exti__fork_lock(&lock);
    while (*link != t)
        link = &(*link)->next;
    remove_thread(link);
    exti__fork_unlock(&lock);
}

void exti__ctx_thread_enter(struct exti_ctx_thread *t)
{
    exti__fork_lock(&lock);
    t->tid = this_thread();
    starter = t->ctx;
    exti__fork_unlock(&lock);
}

bool exti__ctx_thread_is_own(const struct exti_ctx *ctx)
{
    return starter == ctx;
}

void exti__ctx_thread_leave(void *t)
{
    exti__fork_lock(&lock);
    ((struct exti_ctx_thread *)t)->left = true;
    exti__fork_unlock(&lock);
}

/* ---- what threads have of a context ---- */

unsigned long exti__ctx_threads_detachings(void)
{
    return atomic_load(&detachings);
}

bool exti__ctx_thread_set_value(const struct exti_ctx *ctx, pthread_key_t key, bool set)
{
    struct exti_ctx_thread **link;
    bool ok = true;

    exti__fork_lock(&lock);
    link = find_thread(VALUE, ctx, this_thread(), key);
    if (set)
        ok = *link || add_thread(VALUE, ctx, this_thread(), key);
    else if (*link)
        remove_thread(link);
    exti__fork_unlock(&lock);
    return ok;
}

const struct exti_ctx *exti__ctx_threads_only(void)
{
    const struct exti_ctx *only = NULL;
    bool several = false;

    exti__fork_lock(&lock);
    for (const struct exti_ctx_thread *t = threads; t; t = t->next) {
        if (!t->ctx || t->tid != this_thread())
            continue;
        several = several || (only && only != t->ctx);
        only = t->ctx;
    }
    exti__fork_unlock(&lock);
    return several ? NULL : only;
}

void exti__ctx_thread_values_dropped(const struct exti_ctx *ctx, pthread_key_t key)
{
    struct exti_ctx_thread **link;

    exti__fork_lock(&lock);
    for (link = &threads; *link;) {
        struct exti_ctx_thread *t = *link;

        if (t->kind != VALUE || t->ctx != ctx || t->key != key) {
            link = &t->next;
        } else if (t->tid == this_thread() || *find_thread(INSIDE, ctx, t->tid, 0)) {
            remove_thread(link);
        } else {
            t->kind = INSIDE;
            t->key = 0;
            link = &t->next;
        }
    }
    exti__fork_unlock(&lock);
}

void exti__ctx_thread_detached(const struct exti_ctx *ctx, uint64_t thread)
{
    const pid_t tid = thread ? (pid_t)thread : this_thread();

    exti__fork_lock(&lock);
    atomic_fetch_add(&detachings, 1);
    for (struct exti_ctx_thread **link = &threads; *link;)
        if ((*link)->kind != STARTED && (*link)->ctx == ctx && (*link)->tid == tid)
            remove_thread(link);
        else
            link = &(*link)->next;
    exti__fork_unlock(&lock);
}

/* ---- the end of a context ---- */

/* A thread that a copy has started may be inside, too: its entry as the former, if it has one. */
static const struct exti_ctx_thread *as_started(const struct exti_ctx_thread *t)
{
    const struct exti_ctx_thread *started = *find_thread(STARTED, t->ctx, t->tid, 0);

    return started ? started : t;
}

static bool is_to_be_stopped(const struct exti_ctx_thread *t)
{
    return as_started(t)->end == STOPS;
}

/* A thread that CPython has started, and that is not in it any more, soon returns from its start
 * routine, and one that its library has told to end. */
static bool is_ending(const struct exti_ctx_thread *t)
{
    if (as_started(t)->stopped)
        return true;
    return t->kind == STARTED &&
           (t->left || (t->by_api && !*find_thread(INSIDE, t->ctx, t->tid, 0)));
}

static bool keeps_mapped(const struct exti_ctx_thread *t, const struct exti_ctx *ctx)
{
    return t->ctx == ctx && ((t->kind == STARTED && t->end != JOINS) || t->kind == INSIDE) &&
           is_alive(t) && !exti__thread_is_exiting(t->tid);
}

/* Whether threads live that are not to be stopped yet, and all of those are ending, or may be. */
static bool all_are_ending(const struct exti_ctx *ctx, bool may_be)
{
    bool some = false;

    for (const struct exti_ctx_thread *t = threads; t; t = t->next) {
        if (!keeps_mapped(t, ctx) || (is_to_be_stopped(t) && !as_started(t)->stopped))
            continue;
        if (!may_be && !is_ending(t))
            return false;
        some = true;
    }
    return some;
}

/* A busy machine may take as long to let a thread end.  A thread that takes longer leaves the
 * context mapped, which is safe. */
#define PATIENCE_MS 10000

/* A thread that the program has joined may be there for a moment: the kernel wakes who joins it
 * before it takes the thread from the process (kernel/exit.c, exit_mm and exit_notify). */
#define MOMENT_MS 20

static void wait_for_ending(const struct exti_ctx *ctx)
{
    const struct timespec moment = {0, 1000000};

    for (int ms = 0; ms < PATIENCE_MS && all_are_ending(ctx, ms < MOMENT_MS); ms++) {
        exti__fork_unlock(&lock);
        nanosleep(&moment, NULL);
        exti__fork_lock(&lock);
    }
}

/* Describes the nth of the context's living threads, each once: a thread that a copy has started
 * counts as STARTED, although it may be INSIDE too. */
static bool describe_nth_living(const struct exti_ctx *ctx, size_t n, struct exti_error *finding)
{
    const struct exti_ctx_thread *t;

    exti__fork_lock(&lock);
    for (t = threads; t; t = t->next)
        if (keeps_mapped(t, ctx) &&
            (t->kind == STARTED || !*find_thread(STARTED, ctx, t->tid, 0)) && n-- == 0)
            break;
    if (t)
        exti__thread_describe(ctx, t->tid, t->kind == STARTED ? t->start : 0, finding);
    exti__fork_unlock(&lock);
    return t != NULL;
}

/* Whether threads live that are to be stopped, and no others. */
static bool all_are_stopped_at_exit(const struct exti_ctx *ctx)
{
    bool some = false;

    for (const struct exti_ctx_thread *t = threads; t; t = t->next) {
        if (!keeps_mapped(t, ctx))
            continue;
        if (!is_to_be_stopped(t))
            return false;
        some = true;
    }
    return some;
}

bool exti__ctx_threads_stop_at_exit(const struct exti_ctx *ctx)
{
    bool all;

    exti__fork_lock(&lock);
    wait_for_ending(ctx);
    all = all_are_stopped_at_exit(ctx);
    for (struct exti_ctx_thread *t = threads; all && t; t = t->next)
        t->stopped = t->stopped || (t->ctx == ctx && t->end == STOPS);
    exti__fork_unlock(&lock);
    return all;
}

size_t exti__ctx_threads_report(const struct exti_ctx *ctx, exti_report_fn report, void *user)
{
    struct exti_error finding = {0};
    size_t n;

    exti__fork_lock(&lock);
    wait_for_ending(ctx);
    exti__fork_unlock(&lock);
    for (n = 0; describe_nth_living(ctx, n, &finding); n++) {
        report(user, &finding);
        finding = (struct exti_error){0};
    }
    return n;
}

void exti__ctx_threads_forget(const struct exti_ctx *ctx)
{
    exti__fork_lock(&lock);
    for (struct exti_ctx_thread *t = threads; t; t = t->next)
        if (t->ctx == ctx)
            t->ctx = NULL;
    remove_dead_threads();
    exti__fork_unlock(&lock);
}
