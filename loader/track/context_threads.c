/* The table of guests: one for the process, as a thread can be of several contexts. */
#define _GNU_SOURCE /* syscall */
#include "loader/track/context_threads.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/mem.h"
#include "loader/track/module.h"

enum kind {
    STARTED, /* by a copy */
    VALUE,   /* has a value under a key of the context */
    INSIDE, /* had one when the context deleted the key, as CPython does with the one by which it knows the
              * threads that are in it */
    OBJECT /* has C++ thread-local objects to destroy */
};

struct exti_ctx_thread {
    enum kind kind;
    const struct exti_ctx *ctx; /* NULL once that is gone */
    pid_t tid;                  /* 0: not running yet */
    pthread_key_t key;          /* VALUE */
    uintptr_t start;            /* STARTED: the routine */
    bool by_api, left;          /* STARTED: the routine is the API library's; has returned */
    struct exti_ctx_thread *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct exti_ctx_thread *guests;
static size_t count, sweep_at = 64;

/* Whose each key is. */
static const struct exti_ctx *_Atomic owners[PTHREAD_KEYS_MAX];

/* Another thread may hold the lock at the moment of a fork, and is not there in the child to give it
 * back. */
static void lock_for_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void prepare_for_forks(void)
{
    pthread_atfork(lock_for_fork, unlock_after_fork, unlock_after_fork);
}

void exti__ctx_threads_survive_forks(void)
{
    pthread_once(&fork_once, prepare_for_forks);
}

static pid_t this_thread(void)
{
    return (pid_t)syscall(SYS_gettid);
}

/* Also while its thread-specific destructors run, which no routine of its own can tell the end of. */
static bool lives(const struct exti_ctx_thread *g)
{
    return g->tid == 0 || syscall(SYS_tgkill, getpid(), g->tid, 0) == 0;
}

/* ---- the table; the lock is held ---- */

static void unlink_thread(struct exti_ctx_thread **link)
{
    struct exti_ctx_thread *g = *link;

    *link = g->next;
    exti__free(g);
    count--;
}

static void sweep(void)
{
    for (struct exti_ctx_thread **link = &guests; *link;)
        if (lives(*link))
            link = &(*link)->next;
        else
            unlink_thread(link);
    sweep_at = count * 2 + 64;
}

static struct exti_ctx_thread **find(enum kind kind, const struct exti_ctx *ctx, pid_t tid,
                                     pthread_key_t key)
{
    struct exti_ctx_thread **link = &guests;

    while (*link && !((*link)->kind == kind && (*link)->ctx == ctx && (*link)->tid == tid &&
                      (*link)->key == key))
        link = &(*link)->next;
    return link;
}

static struct exti_ctx_thread *add(enum kind kind, const struct exti_ctx *ctx, pid_t tid,
                                   pthread_key_t key)
{
    struct exti_ctx_thread *g = exti__calloc(1, sizeof *g);

    if (!g)
        return NULL;
    if (count >= sweep_at)
        sweep();
    *g = (struct exti_ctx_thread){.kind = kind, .ctx = ctx, .tid = tid, .key = key, .next = guests};
    guests = g;
    count++;
    return g;
}

/* Adds what is not there yet. */
static bool note(enum kind kind, const struct exti_ctx *ctx, pid_t tid, pthread_key_t key)
{
    return *find(kind, ctx, tid, key) || add(kind, ctx, tid, key);
}

/* ---- threads that copies start ---- */

struct exti_ctx_thread *exti__ctx_thread_new(const struct exti_ctx *ctx, uintptr_t start)
{
    struct exti_module m;
    bool by_api = exti__address_map_find(start, &m) && ctx->api && m.handle == ctx->api->handle;
    struct exti_ctx_thread *g;

    pthread_mutex_lock(&lock);
    g = add(STARTED, ctx, 0, 0);
    if (g) {
        g->start = start;
        g->by_api = by_api;
    }
    pthread_mutex_unlock(&lock);
    return g;
}

void exti__ctx_thread_cancel(struct exti_ctx_thread *g)
{
    struct exti_ctx_thread **link = &guests;

    pthread_mutex_lock(&lock);
    while (*link != g)
        link = &(*link)->next;
    unlink_thread(link);
    pthread_mutex_unlock(&lock);
}

void exti__ctx_thread_enter(struct exti_ctx_thread *g)
{
    pthread_mutex_lock(&lock);
    g->tid = this_thread();
    pthread_mutex_unlock(&lock);
}

void exti__ctx_thread_leave(void *g)
{
    pthread_mutex_lock(&lock);
    ((struct exti_ctx_thread *)g)->left = true;
    pthread_mutex_unlock(&lock);
}

void exti__ctx_thread_has_object(const struct exti_ctx *ctx)
{
    pthread_mutex_lock(&lock);
    note(OBJECT, ctx, this_thread(), 0);
    pthread_mutex_unlock(&lock);
}

/* ---- keys ---- */

void exti__ctx_key_made(const struct exti_ctx *ctx, pthread_key_t key)
{
    atomic_store(&owners[key], ctx);
}

/* mimalloc does so in CPython 3.13 and later, before its calls can be re-pointed.  Of a key that does not
 * exist both C libraries say NULL. */
void exti__ctx_keys_find(const struct exti_ctx *ctx, const struct exti_layout *copy)
{
    for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
        uintptr_t value = (uintptr_t)pthread_getspecific(key);

        if (value >= copy->lo && value < copy->hi && !atomic_load(&owners[key]))
            exti__ctx_key_made(ctx, key);
    }
}

bool exti__ctx_key_value(pthread_key_t key, const void *value)
{
    const struct exti_ctx *ctx = key < PTHREAD_KEYS_MAX ? atomic_load(&owners[key]) : NULL;
    struct exti_ctx_thread **link;
    bool ok = true;

    if (!ctx)
        return true;
    pthread_mutex_lock(&lock);
    link = find(VALUE, ctx, this_thread(), key);
    if (value)
        ok = *link || add(VALUE, ctx, this_thread(), key);
    else if (*link)
        unlink_thread(link);
    pthread_mutex_unlock(&lock);
    return ok;
}

void exti__ctx_key_deleted(pthread_key_t key)
{
    struct exti_ctx_thread **link;
    const struct exti_ctx *ctx;

    pthread_mutex_lock(&lock);
    ctx = key < PTHREAD_KEYS_MAX ? atomic_exchange(&owners[key], NULL) : NULL;
    for (link = &guests; ctx && *link;) {
        struct exti_ctx_thread *g = *link;

        if (g->kind != VALUE || g->ctx != ctx || g->key != key) {
            link = &g->next;
        } else if (g->tid == this_thread() || *find(INSIDE, ctx, g->tid, 0)) {
            unlink_thread(link);
        } else {
            g->kind = INSIDE;
            g->key = 0;
            link = &g->next;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Makes a key of this number, which was deleted just now and has no destructor any more.  Both C
 * libraries give the lowest that is free. */
static bool make_again(pthread_key_t key)
{
    pthread_key_t taken[PTHREAD_KEYS_MAX];
    size_t n = 0;
    bool made = false;

    while (!made && n < PTHREAD_KEYS_MAX && !pthread_key_create(&taken[n], NULL))
        made = taken[n++] == key;
    for (size_t i = 0; i + made < n; i++)
        pthread_key_delete(taken[i]);
    return made;
}

void exti__ctx_keys_disarm(const struct exti_ctx *ctx)
{
    pthread_mutex_lock(&lock);
    for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
        if (atomic_load(&owners[key]) != ctx)
            continue;
        pthread_key_delete(key);
        if (!make_again(key))
            atomic_store(&owners[key], NULL);
    }
    pthread_mutex_unlock(&lock);
}

void exti__ctx_keys_delete(const struct exti_ctx *ctx)
{
    pthread_mutex_lock(&lock);
    for (pthread_key_t key = 0; key < PTHREAD_KEYS_MAX; key++) {
        if (atomic_load(&owners[key]) != ctx)
            continue;
        atomic_store(&owners[key], NULL);
        pthread_key_delete(key);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- the end of a context ---- */

/* Whether the thread is about to end.  A thread of CPython's that is not in it any more returns from its
 * start routine soon after. */
static bool ending(const struct exti_ctx_thread *g)
{
    return g->kind == STARTED && (g->left || (g->by_api && !*find(INSIDE, g->ctx, g->tid, 0)));
}

static bool blocks(const struct exti_ctx_thread *g, const struct exti_ctx *ctx)
{
    return g->ctx == ctx && (g->kind == STARTED || g->kind == INSIDE) && lives(g);
}

/* Whether none lives but for some that are ending. */
static bool all_ending(const struct exti_ctx *ctx)
{
    bool some = false;

    for (const struct exti_ctx_thread *g = guests; g; g = g->next) {
        if (!blocks(g, ctx))
            continue;
        if (!ending(g))
            return false;
        some = true;
    }
    return some;
}

/* As long as a busy machine may take to let a thread end; one that takes longer leaves the context
 * mapped, which is safe. */
#define PATIENCE_MS 10000

static void wait_for_ending(const struct exti_ctx *ctx)
{
    const struct timespec moment = {0, 1000000};

    for (int ms = 0; ms < PATIENCE_MS && all_ending(ctx); ms++) {
        pthread_mutex_unlock(&lock);
        nanosleep(&moment, NULL);
        pthread_mutex_lock(&lock);
    }
}

/* `start` is 0 for a thread of the program. */
void exti__ctx_thread_describe(const struct exti_ctx *ctx, pid_t tid, uintptr_t start,
                               struct exti_error *finding)
{
    char path[64], name[32] = "";
    struct exti_module m;
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/task/%ld/comm", (long)tid);
    f = fopen(path, "re");
    if (f && !fgets(name, sizeof name, f))
        name[0] = 0;
    if (f)
        fclose(f);
    name[strcspn(name, "\n")] = 0;
    exti__fail(finding, EXTI_E_BUSY, EXTI_NO_OFFSET,
               start ? "thread %ld '%s', which this has started, is still running"
                     : "thread %ld '%s' of the program is still in it",
               (long)tid, name);
    if (start && exti__address_map_find(start, &m))
        exti__error_file(finding, m.lib.path);
    else
        exti__error_file(finding, ctx->api ? ctx->api->copy : "");
}

/* Describes the nth of the context's living threads, each of which is one: as INSIDE only if no copy has
 * started it. */
static bool nth_living(const struct exti_ctx *ctx, size_t n, struct exti_error *finding)
{
    const struct exti_ctx_thread *g;

    pthread_mutex_lock(&lock);
    for (g = guests; g; g = g->next)
        if (blocks(g, ctx) && (g->kind == STARTED || !*find(STARTED, ctx, g->tid, 0)) && n-- == 0)
            break;
    if (g)
        exti__ctx_thread_describe(ctx, g->tid, g->kind == STARTED ? g->start : 0, finding);
    pthread_mutex_unlock(&lock);
    return g != NULL;
}

size_t exti__ctx_threads_report(const struct exti_ctx *ctx, exti_report_fn report, void *user)
{
    struct exti_error finding = {0};
    size_t n;

    pthread_mutex_lock(&lock);
    wait_for_ending(ctx);
    pthread_mutex_unlock(&lock);
    for (n = 0; nth_living(ctx, n, &finding); n++) {
        report(user, &finding);
        finding = (struct exti_error){0};
    }
    return n + exti__initialiser_threads_report(ctx, report, user);
}

bool exti__ctx_thread_is_known(pid_t tid)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (const struct exti_ctx_thread *g = guests; g && !found; g = g->next)
        found = g->kind == STARTED && g->tid == tid;
    pthread_mutex_unlock(&lock);
    return found;
}

bool exti__ctx_threads_have_objects(const struct exti_ctx *ctx)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (const struct exti_ctx_thread *g = guests; g && !found; g = g->next)
        found = g->kind == OBJECT && g->ctx == ctx && lives(g);
    pthread_mutex_unlock(&lock);
    return found;
}

void exti__ctx_threads_forget(const struct exti_ctx *ctx)
{
    pthread_mutex_lock(&lock);
    for (struct exti_ctx_thread *g = guests; g; g = g->next)
        if (g->ctx == ctx)
            g->ctx = NULL;
    for (size_t key = 0; key < PTHREAD_KEYS_MAX; key++)
        if (atomic_load(&owners[key]) == ctx)
            atomic_store(&owners[key], NULL);
    sweep();
    pthread_mutex_unlock(&lock);
}
