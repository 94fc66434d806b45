/* A pool's keeper, a thread of its own, opens contexts one after the other; each that is replaced
 * is closed on another thread, as that may have to wait for what runs in it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/embed/jobs.h"
#include "runtime/embed/options.h"
#include "runtime/embed/threads.h"
#include "runtime/fail.h"
#include "runtime/host.h"
#include "runtime/system.h"

enum slot_state {
    SLOT_EMPTY, /* its context is to be opened */
    SLOT_OPENING,
    SLOT_IDLE,
    SLOT_BUSY,   /* somebody has acquired it */
    SLOT_RETIRED /* its context is to be replaced */
};

struct slot {
    enum slot_state state;
    struct extipy_ctx *ctx; /* a reference, as whoever acquires it may close it */
    size_t bytes;           /* of its heap, and its calls, when it was new */
    unsigned long calls;
};

struct extipy_pool {
    const struct extipy_python *python;
    struct extipy_pool_opts opts;
    struct extipy_opts each;
    pthread_t keeper;

    pthread_mutex_t lock; /* of what follows; nothing is called while it is held */
    pthread_cond_t work;  /* the keeper waits for it */
    pthread_cond_t changed;
    struct slot *slots;
    size_t waiting; /* threads that want a context, since the last failure */
    int asked;      /* one did, and maybe has not waited */
    size_t failures;
    struct exti_error failure; /* the last one */
    int stalled;               /* it was the last that happened */
    size_t closing;            /* contexts that threads close */
    int closed;                /* the pool is, or is about to be */
    struct extipy_closed sum;
};

/* A context that is closed by a thread of its own. */
struct retired {
    struct extipy_pool *pool;
    struct extipy_ctx *ctx;
};

/* The lock is held.  NULL: there is none. */
static struct slot *find_slot(const struct extipy_pool *p, enum slot_state state)
{
    for (size_t i = 0; i < p->opts.count; i++)
        if (p->slots[i].state == state)
            return &p->slots[i];
    return NULL;
}

static size_t count_slots(const struct extipy_pool *p, enum slot_state state)
{
    size_t n = 0;

    for (size_t i = 0; i < p->opts.count; i++)
        n += p->slots[i].state == state;
    return n;
}

/* ---- the keeper ---- */

static int import_module(struct extipy_ctx *c, const char *name, struct exti_error *err)
{
    struct extipy_call call = {.size = sizeof call, .function = "importlib:import_module"};
    struct extipy_values *v;
    size_t text;
    int rc = extipy_values_new(&v, err);

    if (rc < 0)
        return rc;
    text = extipy_str(v, name, strlen(name));
    call.values = v;
    call.args = extipy_container(v, EXTIPY_TUPLE, &text, 1);
    rc = extipy_call(c, &call, NULL, NULL, err);
    extipy_values_free(v);
    return rc;
}

static int warm_up(const struct extipy_pool *p, struct extipy_ctx *c, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < p->opts.import_count && rc == 0; i++)
        rc = import_module(c, p->opts.imports[i], err);
    if (rc == 0 && p->opts.source)
        rc = extipy_exec(c, p->opts.source, NULL, err);
    extipy_detach(c, NULL);
    return rc;
}

static int open_warm(struct slot *out, const struct extipy_pool *p, size_t index,
                     struct exti_error *err)
{
    struct extipy_opts each = p->each;
    struct extipy_ctx *c;
    int rc;

    each.index = (int)index;
    each.count = (int)p->opts.count;
    rc = extipy_open(&c, p->python, &each, err);
    if (rc < 0)
        return rc;
    rc = warm_up(p, c, err);
    if (rc < 0) {
        extipy_close(c, NULL, NULL, NULL, NULL);
        return rc;
    }
    *out = (struct slot){.state = SLOT_IDLE,
                         .ctx = extipy__context_ref(c),
                         .bytes = pyrt_heap_bytes(c->heap),
                         .calls = atomic_load(&c->called)};
    return 0;
}

/* The lock is held, and let go of meanwhile. */
static void fill_slot(struct extipy_pool *p, struct slot *s)
{
    struct exti_error err = {0};
    struct slot filled = {.state = SLOT_EMPTY};
    int rc;

    s->state = SLOT_OPENING;
    p->asked = 0;
    pthread_mutex_unlock(&p->lock);
    rc = open_warm(&filled, p, (size_t)(s - p->slots), &err);
    pthread_mutex_lock(&p->lock);
    *s = filled;
    p->stalled = rc < 0;
    if (rc < 0) {
        p->failure = err;
        p->failures++;
        p->waiting = 0;
    }
    pthread_cond_broadcast(&p->changed);
}

/* Consumes the reference to the context. */
static void close_context(struct extipy_pool *p, struct extipy_ctx *c, exti_report_fn report,
                          void *user)
{
    struct extipy_closed closed = {.size = sizeof closed};

    extipy_close(c, report, user, &closed, NULL);
    extipy__context_unref(c);
    pthread_mutex_lock(&p->lock);
    p->sum.attached += closed.attached;
    p->sum.mapped += closed.mapped;
    p->sum.buffers += closed.buffers;
    pthread_mutex_unlock(&p->lock);
}

static void *close_retired(void *arg)
{
    struct retired *r = arg;
    struct extipy_pool *p = r->pool;

    close_context(p, r->ctx, NULL, NULL);
    free(r);
    pthread_mutex_lock(&p->lock);
    p->closing--;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* The lock is held, and let go of meanwhile. */
static void empty_slot(struct extipy_pool *p, struct slot *s)
{
    struct retired *r = malloc(sizeof *r), here = {p, s->ctx};
    pthread_t thread;

    s->ctx = NULL;
    s->state = SLOT_EMPTY;
    p->closing++;
    pthread_mutex_unlock(&p->lock);
    if (r)
        *r = here;
    if (r && pyrt_thread_start(&thread, close_retired, r, NULL) == 0) {
        pthread_detach(thread);
        pthread_mutex_lock(&p->lock);
        return;
    }
    free(r);
    close_context(p, here.ctx, NULL, NULL);
    pthread_mutex_lock(&p->lock);
    p->closing--;
}

static int is_wanted(const struct extipy_pool *p)
{
    if (!p->opts.lazy && !p->stalled)
        return 1;
    return p->asked || count_slots(p, SLOT_IDLE) < p->waiting;
}

static void *keep_pool(void *arg)
{
    struct extipy_pool *p = arg;
    struct slot *s;

    pyrt_name_thread("context pool");
    pthread_mutex_lock(&p->lock);
    while (!p->closed)
        if ((s = find_slot(p, SLOT_RETIRED)))
            empty_slot(p, s);
        else if ((s = find_slot(p, SLOT_EMPTY)) && is_wanted(p))
            fill_slot(p, s);
        else
            pthread_cond_wait(&p->work, &p->lock);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- opening ---- */

static int read_pool_options(struct extipy_pool *p, const struct extipy_pool_opts *given,
                             struct exti_error *err)
{
    int rc = extipy__options_read(&p->opts, sizeof p->opts, given, err);

    if (rc == 0 && p->opts.each)
        rc = extipy__options_read(&p->each, sizeof p->each, p->opts.each, err);
    if (rc < 0)
        return rc;
    p->each.size = sizeof p->each;
    if (!p->opts.count || p->opts.count > INT_MAX)
        return pyrt_fail(err, EXTI_E_ARG, "a pool needs a count of contexts");
    if (p->each.dir || p->each.name)
        return pyrt_fail(err, EXTI_E_ARG,
                         "dir and name are of one context, and cannot be those of a pool");
    if (p->each.on_caller)
        return pyrt_fail(err, EXTI_E_ARG, "a pool's contexts have threads of their own");
    if (p->opts.most_growth && (p->each.flags & EXTI_CTX_KEEP))
        return pyrt_fail(err, EXTI_E_ARG, "the memory of contexts that are kept is not counted");
    return 0;
}

static void free_pool(struct extipy_pool *p)
{
    pthread_cond_destroy(&p->changed);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p->slots);
    free(p);
}

static int new_pool(struct extipy_pool **out, const struct extipy_python *python,
                    const struct extipy_pool_opts *opts, struct exti_error *err)
{
    struct extipy_pool *p = calloc(1, sizeof *p);
    int rc;

    if (!p)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    pthread_mutex_init(&p->lock, NULL);
    pyrt_cond_init(&p->work);
    pyrt_cond_init(&p->changed);
    p->python = python;
    rc = read_pool_options(p, opts, err);
    if (rc == 0) {
        p->slots = calloc(p->opts.count, sizeof *p->slots);
        rc = p->slots ? pyrt_thread_start(&p->keeper, keep_pool, p, err)
                      : pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    }
    if (rc < 0)
        free_pool(p);
    else
        *out = p;
    return rc;
}

/* Waits until all contexts are there, or one has failed. */
static int await_all(struct extipy_pool *p, struct exti_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&p->lock);
    while (!p->failures && count_slots(p, SLOT_IDLE) < p->opts.count)
        pthread_cond_wait(&p->changed, &p->lock);
    if (p->failures) {
        rc = p->failure.code;
        if (err)
            *err = p->failure;
    }
    pthread_mutex_unlock(&p->lock);
    return rc;
}

int extipy_pool_open(struct extipy_pool **out, const struct extipy_python *python,
                     const struct extipy_pool_opts *opts, struct exti_error *err)
{
    struct extipy_attachment *paused;
    struct extipy_pool *p = NULL;
    int rc;

    if (!out || !python || !opts)
        return pyrt_fail(err, EXTI_E_ARG, "out, python or opts is NULL");
    /* From here on the thread has a record, so closing cannot fail. */
    rc = extipy__threads_pause(&paused, err);
    if (rc < 0)
        return rc;
    rc = new_pool(&p, python, opts, err);
    if (rc == 0 && !p->opts.lazy)
        rc = await_all(p, err);
    if (rc == 0) {
        *out = p;
    } else if (p) {
        extipy_pool_close(p, NULL, NULL, NULL, NULL);
        free_pool(p);
    }
    extipy__threads_resume(paused);
    return rc;
}

/* ---- taking turns ---- */

/* The lock is held. */
static int await_idle(struct slot **out, struct extipy_pool *p, uint64_t until,
                      struct exti_error *err)
{
    size_t failures = p->failures;
    struct slot *s;

    p->asked |= !find_slot(p, SLOT_IDLE) && !find_slot(p, SLOT_OPENING);
    p->waiting++;
    pthread_cond_signal(&p->work);
    while (!(s = find_slot(p, SLOT_IDLE)) && !p->closed && p->failures == failures &&
           pyrt_clock() < until)
        pyrt_cond_wait(&p->changed, &p->lock, until);
    if (p->failures == failures)
        p->waiting--;
    if (p->closed)
        return pyrt_fail(err, EXTIPY_E_CLOSED, "the pool is closed");
    if (s) {
        s->state = SLOT_BUSY;
        *out = s;
        return 0;
    }
    if (p->failures == failures)
        return pyrt_fail(err, EXTIPY_E_TIMEOUT, "no context of the pool was free in time");
    if (err)
        *err = p->failure;
    return p->failure.code;
}

static void set_slot(struct extipy_pool *p, struct slot *s, enum slot_state state)
{
    pthread_mutex_lock(&p->lock);
    s->state = state;
    pthread_cond_signal(&p->work);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static int is_open(struct extipy_ctx *c)
{
    int open;

    pthread_mutex_lock(&c->lock);
    open = c->phase == EXTIPY_OPEN && !extipy__has_exited(c);
    pthread_mutex_unlock(&c->lock);
    return open;
}

static int take_open(struct extipy_ctx **out, struct extipy_pool *p, uint64_t until,
                     struct exti_error *err)
{
    struct slot *s;
    int rc;

    for (;;) {
        s = NULL;
        pthread_mutex_lock(&p->lock);
        rc = await_idle(&s, p, until, err);
        pthread_mutex_unlock(&p->lock);
        if (!s)
            return rc;
        if (is_open(s->ctx))
            break;
        set_slot(p, s, SLOT_RETIRED);
    }
    *out = s->ctx;
    return 0;
}

int extipy_pool_acquire(struct extipy_ctx **out, struct extipy_pool *p, int64_t timeout,
                        struct exti_error *err)
{
    struct extipy_attachment *paused;
    uint64_t until = timeout < 0 ? PYRT_NEVER : pyrt_clock_after((uint64_t)timeout);
    int rc;

    if (!out || !p)
        return pyrt_fail(err, EXTI_E_ARG, "out or the pool is NULL");
    rc = extipy__threads_pause(&paused, err);
    if (rc < 0)
        return rc;
    rc = take_open(out, p, until, err);
    extipy__threads_resume(paused);
    return rc;
}

/* Whether the context is to be replaced; somebody may close it meanwhile. */
static int is_worn(const struct extipy_pool *p, const struct slot *s)
{
    struct extipy_ctx *c = s->ctx;
    unsigned long calls = atomic_load(&c->called) - s->calls;
    size_t bytes;

    if (extipy__context_begin_visit(c, EXTIPY_OPEN, NULL) < 0)
        return 1;
    bytes = pyrt_heap_bytes(c->heap);
    extipy__context_end_visit(c, 0);
    if (p->opts.most_calls && calls >= p->opts.most_calls)
        return 1;
    return p->opts.most_growth && bytes > s->bytes && bytes - s->bytes > p->opts.most_growth;
}

int extipy_pool_give_back(struct extipy_pool *p, struct extipy_ctx *c, int broken,
                          struct exti_error *err)
{
    struct slot *s = NULL;
    int rc;

    if (!p || !c)
        return pyrt_fail(err, EXTI_E_ARG, "the pool or the context is NULL");
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->opts.count; i++)
        if (p->slots[i].state == SLOT_BUSY && p->slots[i].ctx == c)
            s = &p->slots[i];
    pthread_mutex_unlock(&p->lock);
    if (!s)
        return pyrt_fail(err, EXTI_E_ARG, "the context was not acquired from the pool");
    rc = extipy__jobs_telling(c) ? 0 : extipy_detach(c, err);
    if (rc == 0)
        set_slot(p, s, broken || is_worn(p, s) ? SLOT_RETIRED : SLOT_IDLE);
    return rc;
}

/* ---- the end ---- */

static int check_outside(struct extipy_pool *p, struct exti_error *err)
{
    struct extipy_ctx *c;
    int rc = 0;

    for (size_t i = 0; i < p->opts.count && rc == 0; i++) {
        pthread_mutex_lock(&p->lock);
        c = p->slots[i].ctx ? extipy__context_ref(p->slots[i].ctx) : NULL;
        pthread_mutex_unlock(&p->lock);
        if (!c)
            continue;
        rc = extipy__threads_outside(c, err);
        extipy__context_unref(c);
    }
    return rc;
}

/* Closes each context as soon as nobody has it; the keeper has ended. */
static void close_all(struct extipy_pool *p, exti_report_fn report, void *user)
{
    struct extipy_ctx *c;
    struct slot *s;

    pthread_mutex_lock(&p->lock);
    while (count_slots(p, SLOT_EMPTY) < p->opts.count || p->closing) {
        s = find_slot(p, SLOT_IDLE);
        s = s ? s : find_slot(p, SLOT_RETIRED);
        if (!s) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        c = s->ctx;
        *s = (struct slot){.state = SLOT_EMPTY};
        pthread_mutex_unlock(&p->lock);
        close_context(p, c, report, user);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
}

int extipy_pool_close(struct extipy_pool *p, exti_report_fn report, void *user,
                      struct extipy_closed *out, struct exti_error *err)
{
    struct extipy_attachment *paused = NULL;
    int rc, closed;

    if (!p)
        return 0;
    if (out && out->size < sizeof out->size)
        return pyrt_fail(err, EXTI_E_ARG, "out has no size");
    rc = check_outside(p, err);
    if (rc == 0)
        rc = extipy__threads_pause(&paused, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&p->lock);
    closed = p->closed;
    p->closed = 1;
    pthread_cond_signal(&p->work);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    if (closed) {
        extipy__threads_resume(paused);
        return pyrt_fail(err, EXTIPY_E_CLOSED, "the pool is closed");
    }
    pthread_join(p->keeper, NULL);
    close_all(p, report, user);
    if (out)
        extipy__options_write(out, &p->sum, sizeof p->sum);
    extipy__threads_resume(paused);
    return 0;
}

void extipy_pool_free(struct extipy_pool *p)
{
    if (p)
        free_pool(p);
}
