#include "runtime/embed/threads.h"

#include <stdlib.h>

#include "runtime/embed/object.h"
#include "runtime/fail.h"
#include "runtime/system.h"

#if defined(EXTI_ANALYZE) && !defined(__clang__) /* gcc 12 takes a thread's own data for lost */
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif

/* A context that the thread is or was in. */
struct extipy_attachment {
    struct extipy_ctx *ctx;
    void *state;    /* its thread state there */
    size_t entries; /* how many times it has entered, and not left */
    int native;     /* the state is Python's: the thread was started by the context */
    int main;       /* the thread initialised, so only finalisation ends the state */
    struct extipy_attachment *next;
    /* Of the context's lock; neither native nor main. */
    uint64_t thread;       /* 0: the context has detached it */
    unsigned long unasked; /* what Python calls it; 0: it was asked to end */
    struct extipy_attachment *next_there;
};

/* One extipy_enter. */
struct entry {
    struct extipy_attachment *at, *paused; /* `paused`: whose GIL it let go of */
    int took;                              /* it took the GIL, which it had not before */
    void *outside;                         /* for exti_ctx_leave */
};

struct record {
    struct extipy_attachment *attachments, *native;
    struct entry *entries;
    size_t depth, room;
};

/* The key's value, which is found sooner here: the key is there for its destructor. */
static _Thread_local struct record *own;
static pthread_key_t record_key;
static pthread_once_t record_once = PTHREAD_ONCE_INIT;
static int record_error;

/* 0 or an errno value. */
static int set_own(struct record *r)
{
    own = r;
    return pthread_setspecific(record_key, r);
}

/* ---- a thread's state in one context ---- */

/* Before 3.12 the current state is that of any thread, so it has to be compared. */
static int has_gil(const struct extipy_attachment *at)
{
    return at->ctx->calls.current_state() == at->state;
}

static struct extipy_attachment *let_go(struct extipy_attachment *at)
{
    if (!at || !has_gil(at))
        return NULL;
    at->ctx->py.PyEval_SaveThread();
    return at;
}

static void take_gil(struct extipy_attachment *at)
{
    if (at)
        at->ctx->py.PyEval_RestoreThread(at->state);
}

static void list_there(struct extipy_attachment *at)
{
    struct extipy_ctx *c = at->ctx;

    at->thread = pyrt_thread_number();
    at->unasked = c->calls.PyThread_get_thread_ident();
    pthread_mutex_lock(&c->lock);
    at->next_there = c->attachments;
    c->attachments = at;
    c->attached++;
    pthread_mutex_unlock(&c->lock);
}

/* The thread is not in the context any more, of which the loader is told unless whoever closes the
 * context has done that. */
static void unlist_there(struct extipy_attachment *at)
{
    struct extipy_ctx *c = at->ctx;
    struct extipy_attachment **link = &c->attachments;
    uint64_t thread;

    pthread_mutex_lock(&c->lock);
    while (*link && *link != at)
        link = &(*link)->next_there;
    if (*link)
        *link = at->next_there;
    thread = at->thread;
    c->detaching += thread != 0;
    pthread_mutex_unlock(&c->lock);
    if (!thread)
        return;
    exti_ctx_detach_thread(c->loader, thread, NULL);
    pthread_mutex_lock(&c->lock);
    c->detaching--;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static void free_attachment(struct extipy_attachment *at)
{
    unlist_there(at);
    extipy__context_unref(at->ctx);
    free(at);
}

/* Ends the thread's state, unless finalisation has. */
static void end_state(struct extipy_attachment *at)
{
    struct extipy_ctx *c = at->ctx;
    void *outside;

    if (extipy__context_begin_visit(c, EXTIPY_CLOSING, NULL) < 0)
        return;
    outside = exti_ctx_enter(c->loader);
    take_gil(at);
    c->calls.PyThreadState_Clear(at->state);
    c->calls.PyThreadState_DeleteCurrent();
    exti_ctx_leave(outside);
    extipy__context_end_visit(c, 1);
}

/* The thread ends inside, by pthread_exit.  Its state has frames, so it stays for finalisation. */
static void abandon(struct extipy_attachment *at)
{
    exti_ctx_leave(NULL);
    let_go(at);
    extipy__context_end_visit(at->ctx, !at->main);
}

/* ---- the thread's record ---- */

/* Detaches a thread that ends. */
static void end_record(void *arg)
{
    struct record *r = arg;
    struct extipy_attachment *at;

    /* Destructors of objects of the thread may enter again. */
    set_own(r);
    while ((at = r->attachments)) {
        if (!at->native && at->entries)
            abandon(at);
        else if (!at->native && !at->main)
            end_state(at);
        r->attachments = at->next;
        free_attachment(at);
    }
    set_own(NULL);
    free(r->entries);
    free(r);
}

static void make_record_key(void)
{
    record_error = pthread_key_create(&record_key, end_record);
}

static struct extipy_attachment *new_attachment(struct record *r, struct extipy_ctx *c)
{
    struct extipy_attachment *at = calloc(1, sizeof *at);

    if (!at)
        return NULL;
    at->ctx = c;
    at->next = r->attachments;
    r->attachments = at;
    return at;
}

/* A thread that a context started is in it from the beginning. */
static int find_native(struct record *r)
{
    struct extipy_ctx *c = extipy__contexts_native();

    if (!c)
        return 0;
    r->native = new_attachment(r, c);
    if (!r->native) {
        extipy__context_unref(c);
        return -1;
    }
    r->native->native = 1;
    r->native->state = c->calls.PyGILState_GetThisThreadState();
    return 0;
}

/* Not amidst what each call passes. */
__attribute__((noinline)) static int new_record(struct exti_error *err)
{
    struct record *r;

    pthread_once(&record_once, make_record_key);
    if (record_error)
        return pyrt_fail_os(err, record_error, "", "cannot make a thread-specific key");
    r = calloc(1, sizeof *r);
    if (!r || find_native(r) < 0 || set_own(r) != 0) {
        own = NULL;
        if (r && r->native)
            free_attachment(r->native);
        free(r);
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    }
    return 0;
}

/* Makes one, unless the thread has it. */
static int need_record(struct exti_error *err)
{
    return own ? 0 : new_record(err);
}

__attribute__((noinline)) static int grow_entries(struct record *r, struct exti_error *err)
{
    size_t room = r->room ? r->room * 2 : 8;
    struct entry *grown = realloc(r->entries, room * sizeof *grown);

    if (!grown)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    r->entries = grown;
    r->room = room;
    return 0;
}

static inline int reserve_entry(struct record *r, struct exti_error *err)
{
    return r->depth < r->room ? 0 : grow_entries(r, err);
}

static struct extipy_attachment *find_attachment(const struct record *r, const struct extipy_ctx *c)
{
    struct extipy_attachment *at = r->attachments;

    while (at && at->ctx != c)
        at = at->next;
    return at;
}

static void drop_attachment(struct record *r, struct extipy_attachment *at)
{
    struct extipy_attachment **link = &r->attachments;

    while (*link != at)
        link = &(*link)->next;
    *link = at->next;
    free_attachment(at);
}

/* The context that the thread runs in. */
static struct extipy_attachment *innermost(const struct record *r)
{
    return r->depth ? r->entries[r->depth - 1].at : r->native;
}

/* The context has been closed, and its finalisation has ended the thread's state.  A thread that is
 * inside one that has exited has still to leave it. */
static int is_over(struct extipy_attachment *at)
{
    int detached;

    pthread_mutex_lock(&at->ctx->lock);
    detached = !at->native && !at->main && !at->entries && !at->thread;
    pthread_mutex_unlock(&at->ctx->lock);
    return detached;
}

/* A thread may outlive any number of contexts. */
static void drop_those_over(struct record *r)
{
    struct extipy_attachment *at, *next;

    for (at = r->attachments; at; at = next) {
        next = at->next;
        if (is_over(at))
            drop_attachment(r, at);
    }
}

/* Makes a thread state. */
static int attach(struct extipy_attachment **out, struct record *r, struct extipy_ctx *c,
                  struct exti_error *err)
{
    struct extipy_attachment *at;

    drop_those_over(r);
    at = new_attachment(r, c);
    if (at)
        at->state = c->calls.PyThreadState_New(c->calls.PyInterpreterState_Main());
    if (!at || !at->state) {
        if (at)
            r->attachments = at->next;
        free(at);
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    }
    extipy__context_ref(c);
    list_there(at);
    *out = at;
    return 0;
}

/* ---- the public calls ---- */

int extipy_enter(struct extipy_ctx *c, struct exti_error *err)
{
    struct extipy_attachment *at, *from;
    struct record *r;
    int rc;

    if (!c)
        return pyrt_fail(err, EXTI_E_ARG, "the context is NULL");
    r = own;
    if (!r) {
        rc = new_record(err);
        if (rc < 0)
            return rc;
        r = own;
    }
    rc = reserve_entry(r, err);
    if (rc == 0 && extipy__has_exited(c))
        rc = extipy__exited(c, err);
    if (rc < 0)
        return rc;
    at = find_attachment(r, c);
    /* Who is inside keeps the context open. */
    if (!at || (!at->entries && !at->native))
        rc = extipy__context_begin_visit(c, EXTIPY_OPEN, err);
    if (rc == 0 && !at && (rc = attach(&at, r, c, err)) < 0)
        extipy__context_end_visit(c, 0);
    if (rc != 0)
        return rc;
    from = innermost(r);
    at->entries++;
    r->entries[r->depth++] = (struct entry){.at = at,
                                            .paused = from == at ? NULL : let_go(from),
                                            .took = !has_gil(at),
                                            .outside = exti_ctx_enter(c->loader)};
    if (r->entries[r->depth - 1].took)
        take_gil(at);
    if (extipy__has_exited(c)) {
        extipy_leave(c, NULL);
        return extipy__exited(c, err);
    }
    extipy__objects_release(c);
    return 0;
}

int extipy_leave(struct extipy_ctx *c, struct exti_error *err)
{
    struct record *const r = own;
    struct entry last;
    int has;

    if (!r || !r->depth || r->entries[r->depth - 1].at->ctx != c)
        return pyrt_fail(err, EXTIPY_E_PLACE,
                         "the context is not the one that this thread entered last");
    last = r->entries[r->depth - 1];
    has = last.took && has_gil(last.at);
    if (last.took && !has && !extipy__has_exited(c))
        return pyrt_fail(err, EXTIPY_E_PLACE,
                         "this thread has let go of the context's GIL since it entered");
    if (!extipy__has_exited(c))
        extipy__objects_release(c);
    if (has)
        c->py.PyEval_SaveThread();
    exti_ctx_leave(last.outside);
    r->depth--;
    last.at->entries--;
    if (!last.at->entries && !last.at->native)
        extipy__context_end_visit(last.at->ctx, 0);
    take_gil(last.paused);
    return 0;
}

int extipy_detach(struct extipy_ctx *c, struct exti_error *err)
{
    struct extipy_attachment *at, *paused;
    int rc = extipy__threads_outside(c, err);

    if (rc < 0)
        return rc;
    at = find_attachment(own, c);
    if (!at || at->main)
        return 0;
    paused = let_go(innermost(own));
    end_state(at);
    drop_attachment(own, at);
    take_gil(paused);
    return 0;
}

/* ---- for other calls ---- */

void extipy__threads_detach_all(struct extipy_ctx *c)
{
    uint64_t thread = 1;

    while (thread) {
        struct extipy_attachment *at;

        pthread_mutex_lock(&c->lock);
        at = c->attachments;
        while (at && !at->thread)
            at = at->next_there;
        thread = at ? at->thread : 0;
        if (at)
            at->thread = 0;
        pthread_mutex_unlock(&c->lock);
        if (thread)
            exti_ctx_detach_thread(c->loader, thread, NULL);
    }
    pthread_mutex_lock(&c->lock);
    while (c->detaching)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

size_t extipy__threads_depth(void)
{
    const struct record *r = own;

    return r ? r->depth : 0;
}

int extipy__threads_entered_last(const struct extipy_ctx *c)
{
    const struct record *r = own;
    size_t i = r ? r->depth : 0;

    if (!i || r->entries[i - 1].at->ctx != c || r->entries[i - 1].at->native)
        return 0;
    while (i > 0 && r->entries[i - 1].at->ctx == c)
        i--;
    while (i > 0)
        if (r->entries[--i].at->ctx == c)
            return 0;
    return 1;
}

unsigned long extipy__threads_take_unasked(struct extipy_ctx *c)
{
    struct extipy_attachment *at = c->attachments;
    unsigned long thread = 0;

    while (at && !at->unasked)
        at = at->next_there;
    if (at) {
        thread = at->unasked;
        at->unasked = 0;
    }
    return thread;
}

int extipy__threads_pause(struct extipy_attachment **out, struct exti_error *err)
{
    int rc = need_record(err);

    if (rc == 0)
        *out = let_go(innermost(own));
    return rc;
}

void extipy__threads_resume(struct extipy_attachment *paused)
{
    take_gil(paused);
}

int extipy__threads_outside(struct extipy_ctx *c, struct exti_error *err)
{
    struct extipy_attachment *at;
    int rc = need_record(err), works;

    if (rc < 0)
        return rc;
    at = find_attachment(own, c);
    pthread_mutex_lock(&c->lock);
    works = extipy__context_works(c);
    pthread_mutex_unlock(&c->lock);
    if (works || (at && at->native))
        return pyrt_fail(err, EXTIPY_E_PLACE, "this thread belongs to the context");
    if (at && at->entries)
        return pyrt_fail(err, EXTIPY_E_PLACE, "this thread is inside the context");
    return 0;
}

/* ---- the program's thread as Python's main one ---- */

int extipy__threads_adopt(struct extipy_ctx *c, void *state, struct exti_error *err)
{
    struct extipy_attachment *at = NULL;
    int rc = need_record(err);

    if (rc == 0)
        at = new_attachment(own, c);
    if (rc == 0 && !at)
        rc = pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    if (rc < 0)
        return rc;
    at->main = 1;
    at->state = state;
    extipy__context_ref(c);
    return 0;
}

int extipy__threads_begin_end(struct extipy_ctx *c, struct exti_error *err)
{
    struct extipy_attachment *at;
    struct record *r;
    int rc = need_record(err);

    if (rc == 0)
        rc = reserve_entry(own, err);
    if (rc < 0)
        return rc;
    r = own;
    at = find_attachment(r, c);
    if (!at || !at->main)
        return pyrt_fail(err, EXTIPY_E_PLACE,
                         "only the thread that opened the context, which is its main one, can "
                         "close it");
    at->entries++;
    r->entries[r->depth++] = (struct entry){.at = at, .took = 1};
    return 0;
}

void extipy__threads_end_end(struct extipy_ctx *c)
{
    struct record *r = own;

    find_attachment(r, c)->entries--;
    r->depth--;
}

void extipy__threads_disown(struct extipy_ctx *c)
{
    struct record *r = own;

    drop_attachment(r, find_attachment(r, c));
}
