#define _GNU_SOURCE /* on_exit */
#include "loader/track/exit_handlers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "loader/track/fork_handlers.h"
#include "loader/track/fork_lock.h"

/* In glibc and musl; the latter is in glibc only. */
extern int __cxa_atexit(void (*function)(void *), void *arg, void *library);
extern int on_exit(void (*function)(int, void *), void *arg) __attribute__((weak));

enum handler_kind {
    AT_EXIT, /* the C library has it too, and calls run_for_libc with it, which frees it */
    ON_EXIT, /* likewise, when the process ends */
    AT_QUICK_EXIT
};

struct exit_handler {
    enum handler_kind kind;
    const struct exti_ctx *ctx; /* compared only; NULL: freed */
    void *handle;               /* the module's */
    union {
        void (*at_exit)(void *);
        void (*on_exit)(int, void *);
        void (*at_quick_exit)(void);
    } function;
    void *arg;
    bool taken; /* off the list, as it has run or is not to run */
    struct exit_handler *older, *newer;
};

/* Guards the list.  Not held while they run.  Taken with no lock of the library held but the system
 * loader's, which calls run_for_libc. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct exit_handler *newest;
static size_t without_library; /* how many of the list the C library does not run as it unloads */
/* In a child that copies have forked: whose it is.  The others are as their threads left them. */
static const struct exti_ctx *forked_by;

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static bool in_libc; /* run_at_process_quick_exit is; of the lock */
static int fork_error;

/* ---- the list; the lock is held ---- */

static void unlink_handler(struct exit_handler *h)
{
    if (h->newer)
        h->newer->older = h->older;
    else
        newest = h->older;
    if (h->older)
        h->older->newer = h->newer;
    without_library -= h->kind != AT_EXIT;
    h->taken = true;
}

static bool is_for(const struct exit_handler *h, const struct exti_ctx *ctx, bool quick)
{
    return (h->kind == AT_QUICK_EXIT) == quick && (!ctx || h->ctx == ctx);
}

static bool runs_here(const struct exit_handler *h)
{
    if (h->ctx && h->ctx->cut_off)
        return false;
    return !forked_by || h->ctx == forked_by || (h->ctx && exti__ctx_is_ours(h->ctx));
}

static void free_taken(struct exit_handler *h)
{
    if (h->kind == AT_QUICK_EXIT)
        exti__free(h);
}

/* ---- running ---- */

static void call_handler(const struct exit_handler *h, int status)
{
    switch (h->kind) {
    case AT_EXIT:
        h->function.at_exit(h->arg);
        break;
    case ON_EXIT:
        h->function.on_exit(status, h->arg);
        break;
    case AT_QUICK_EXIT:
        h->function.at_quick_exit();
        break;
    }
}

/* Takes the newest that is wanted. */
static bool take_handler(bool (*is_wanted)(const struct exit_handler *h, const void *what),
                         const void *what, struct exit_handler *out)
{
    struct exit_handler *h;
    bool found;

    exti__fork_lock(&lock);
    for (h = newest; h && !is_wanted(h, what); h = h->older)
        ;
    found = h != NULL;
    if (found) {
        unlink_handler(h);
        *out = *h;
        free_taken(h);
    }
    exti__fork_unlock(&lock);
    return found;
}

struct end {
    const struct exti_ctx *ctx; /* NULL: of all contexts */
    bool quick;
};

static bool is_to_run(const struct exit_handler *h, const void *what)
{
    const struct end *e = what;

    return is_for(h, e->ctx, e->quick) && runs_here(h);
}

static void run_handlers(const struct exti_ctx *ctx, bool quick, int status)
{
    const struct end e = {ctx, quick};
    struct exit_handler h;

    while (take_handler(is_to_run, &e, &h))
        call_handler(&h, status);
}

void exti__exit_handlers_run(const struct exti_ctx *ctx, int status)
{
    run_handlers(ctx, false, status);
}

void exti__quick_exit_handlers_run(const struct exti_ctx *ctx)
{
    run_handlers(ctx, true, 0);
}

static void run_if_left(struct exit_handler *h, int status)
{
    bool runs;

    exti__fork_lock(&lock);
    runs = !h->taken && runs_here(h);
    if (!h->taken)
        unlink_handler(h);
    exti__fork_unlock(&lock);
    if (runs)
        call_handler(h, status);
    exti__free(h);
}

/* The library is unloaded, or the process ends. */
static void run_for_libc(void *handler)
{
    run_if_left(handler, 0);
}

static void run_on_exit_for_libc(int status, void *handler)
{
    run_if_left(handler, status);
}

static void run_at_process_quick_exit(void)
{
    run_handlers(NULL, true, 0);
}

/* ---- registering ---- */

/* The C library may have no memory for it, until it is asked again. */
static bool register_for_process(void)
{
    bool registered;

    exti__fork_lock(&lock);
    in_libc = in_libc || at_quick_exit(run_at_process_quick_exit) == 0;
    registered = in_libc;
    exti__fork_unlock(&lock);
    return registered;
}

static struct exit_handler *new_handler(const struct exti_module *m, enum handler_kind kind)
{
    struct exit_handler *h = exti__calloc(1, sizeof *h);

    if (!h)
        return NULL;
    h->kind = kind;
    h->ctx = m->ctx;
    h->handle = m->handle;
    return h;
}

static void add_handler(struct exit_handler *h)
{
    exti__fork_lock(&lock);
    h->older = newest;
    if (newest)
        newest->newer = h;
    newest = h;
    without_library += h->kind != AT_EXIT;
    exti__fork_unlock(&lock);
}

/* The C library has not taken it.  -1 */
static int give_up(struct exit_handler *h)
{
    exti__fork_lock(&lock);
    unlink_handler(h);
    exti__fork_unlock(&lock);
    exti__free(h);
    return -1;
}

int exti__at_exit(const struct exti_module *m, void (*function)(void *), void *arg, void *library)
{
    struct exit_handler *h = new_handler(m, AT_EXIT);

    if (!h)
        return -1;
    h->function.at_exit = function;
    h->arg = arg;
    add_handler(h);
    return __cxa_atexit(run_for_libc, h, library) == 0 ? 0 : give_up(h);
}

int exti__on_exit(const struct exti_module *m, void (*function)(int, void *), void *arg)
{
    struct exit_handler *h = new_handler(m, ON_EXIT);

    if (!h)
        return -1;
    h->function.on_exit = function;
    h->arg = arg;
    add_handler(h);
    return on_exit(run_on_exit_for_libc, h) == 0 ? 0 : give_up(h);
}

int exti__at_quick_exit(const struct exti_module *m, void (*function)(void))
{
    struct exit_handler *h = register_for_process() ? new_handler(m, AT_QUICK_EXIT) : NULL;

    if (!h)
        return -1;
    h->function.at_quick_exit = function;
    add_handler(h);
    return 0;
}

/* ---- unloading ---- */

/* C++ registers a destructor for each static object, so a context has thousands of handlers, and
 * hardly ever one of these. */
static bool has_without_library(void)
{
    bool has;

    exti__fork_lock(&lock);
    has = without_library > 0;
    exti__fork_unlock(&lock);
    return has;
}

static bool is_of_module(const struct exit_handler *h, const void *what)
{
    const struct exti_module *m = what;

    return h->kind != AT_EXIT && h->handle == m->handle && h->ctx == m->ctx;
}

void exti__exit_handlers_unload(const struct exti_module *m)
{
    struct exit_handler h;

    while (has_without_library() && take_handler(is_of_module, m, &h))
        if (h.kind == ON_EXIT)
            call_handler(&h, 0);
}

void exti__exit_handlers_forget(const struct exti_ctx *ctx, bool run)
{
    struct exit_handler *h, *older;

    exti__fork_lock(&lock);
    for (h = newest; h; h = older) {
        older = h->older;
        if (h->ctx != ctx)
            continue;
        h->ctx = NULL;
        if (run)
            continue;
        unlink_handler(h);
        free_taken(h);
    }
    exti__fork_unlock(&lock);
}

/* ---- forks ---- */

static void lock_handlers(void)
{
    exti__fork_lock(&lock);
}

static void unlock_handlers(void)
{
    exti__fork_unlock(&lock);
}

static void begin_child(void)
{
    if (exti__fork_handlers_ctx())
        forked_by = exti__fork_handlers_ctx();
    exti__ctx_begin_child();
    exti__fork_unlock(&lock);
}

static void install_fork_handlers(void)
{
    fork_error = pthread_atfork(lock_handlers, unlock_handlers, begin_child);
}

int exti__exit_handlers_survive_forks(void)
{
    pthread_once(&fork_once, install_fork_handlers);
    return fork_error;
}
