/* Many copies at once.  The calling thread goes through the files in their order, decides what each copy is
 * to be and notes it in the manifest; helpers, and the caller when it is far enough ahead, write them.  So
 * what comes out depends on that order alone, as if there were one thread.  A file is told of when it and
 * all that was planned before it is written: in the files' order too. */
#include <search.h>
#include <string.h>
#ifndef _WIN32
#include <signal.h>
#include <unistd.h>
#endif

#include "base/error.h"
#include "base/mem.h"
#include "loader/store/store_copy.h"
#include "loader/store/store_fresh.h"
#include "loader/store/store_graph.h"
#include "loader/store/store_lock.h"
#include "loader/store/store_make.h"
#include "loader/store/store_save.h"
#include "loader/store/store_trace.h"
#include "loader/store/store_walk.h"
#include "loader/store/store_write.h"

/* Plans for each thread that may wait to be written; they hold their files mapped. */
#define LOOK_AHEAD 16

#define MAX_THREADS 256

/* One copy that is to be written. */
struct job {
    struct exti_making making; /* its entry's strings are those of the manifest's */
    struct exti_entry old;     /* the entry that the new one replaces; source NULL: none */
    struct job *next;          /* in the queue */
    bool done;
    int rc;
    struct exti_error err;
};

struct failure {
    const char *source; /* in the same block */
    struct exti_error err;
};

/* A file that was asked for. */
struct root {
    char *real;             /* owned; NULL if it could not be found */
    struct exti_error *err; /* owned; of that */
    size_t jobs;            /* that have to be done before it is */
    char *shared;           /* owned; why it has no copy, nor is to have one */
};

struct batch {
    struct exti_store *s;
    const char *const *originals;
    const struct exti_copy_opts *opts;
    struct root *roots;
    size_t count, walked, told; /* `walked` is also the one that is being walked */
    struct job **jobs;          /* NULL: collected */
    size_t job_count, job_cap, collected;
    void *failures; /* tree of struct failure, by source */
    bool failed;    /* some file has, and the first one so: */
    struct exti_error first;
    bool stopped; /* by the caller's wish */

    pthread_mutex_t lock; /* guards what follows, and the jobs' results */
    pthread_cond_t more, done;
    struct job *head;
    size_t queued;
    bool closing;
    pthread_t *helpers;
    size_t helper_count, helper_max;
};

/* ---- writing ------------------------------------------------------------------------------------ */

/* Takes a job off the queue; NULL if that is empty.  The lock is held. */
static struct job *pop(struct batch *b)
{
    struct job *j = b->head;

    if (j) {
        b->head = j->next;
        b->queued--;
    }
    return j;
}

/* Enters and leaves with the lock held. */
static void write_job(struct batch *b, struct job *j)
{
    struct exti_error err = {0};
    int rc;

    pthread_mutex_unlock(&b->lock);
    rc = exti__store_write(b->s, j->making.im, &j->making.edits, &j->making.e, &err);
    exti__making_clear(&j->making);
    pthread_mutex_lock(&b->lock);
    j->rc = rc;
    j->err = err;
    j->done = true;
    pthread_cond_signal(&b->done);
}

static void *help(void *user)
{
    struct batch *b = user;
    struct job *j;

    pthread_mutex_lock(&b->lock);
    while (!b->closing || b->head) {
        j = pop(b);
        if (j)
            write_job(b, j);
        else
            pthread_cond_wait(&b->more, &b->lock);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* The program's signals are its own threads' matter.  With no helper the caller does it all. */
static void start_helper(struct batch *b)
{
#ifndef _WIN32
    sigset_t all, was;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
#endif
    if (pthread_create(&b->helpers[b->helper_count], NULL, help, b) == 0)
        b->helper_count++;
    else
        b->helper_max = b->helper_count;
#ifndef _WIN32
    pthread_sigmask(SIG_SETMASK, &was, NULL);
#endif
}

/* True if there was one to write. */
static bool write_one(struct batch *b)
{
    struct job *j;

    pthread_mutex_lock(&b->lock);
    j = pop(b);
    if (j)
        write_job(b, j);
    pthread_mutex_unlock(&b->lock);
    return j != NULL;
}

/* The largest first, so that in the end no thread waits for one that has begun such a file last. */
static void enqueue(struct batch *b, struct job *j)
{
    struct job **at = &b->head;
    bool full;

    pthread_mutex_lock(&b->lock);
    while (*at && (*at)->making.im->bytes.n >= j->making.im->bytes.n)
        at = &(*at)->next;
    j->next = *at;
    *at = j;
    full = ++b->queued > LOOK_AHEAD * (b->helper_max + 1);
    pthread_cond_signal(&b->more);
    pthread_mutex_unlock(&b->lock);
    if (b->helper_count < b->helper_max)
        start_helper(b);
    if (full || !b->helper_max)
        write_one(b);
}

/* ---- what has become of the plans ---------------------------------------------------------------- */

static int by_source(const void *a, const void *b)
{
    const struct failure *x = a, *y = b;

    return strcmp(x->source, y->source);
}

static const struct failure *find_failure(const struct batch *b, const char *source)
{
    const struct failure key = {.source = source};
    struct failure *const *node = tfind(&key, &b->failures, by_source);

    return node ? *node : NULL;
}

static int note_failure(struct batch *b, const char *source, const struct exti_error *why,
                        struct exti_error *err)
{
    const size_t n = strlen(source) + 1;
    struct failure *f = exti__alloc(sizeof *f + n);

    if (!f)
        return exti__fail_nomem(err);
    f->source = memcpy(f + 1, source, n);
    f->err = *why;
    if (tsearch(f, &b->failures, by_source))
        return 0;
    exti__free(f);
    return exti__fail_nomem(err);
}

/* The manifest has the new entry's strings, until now. */
static void take_back(struct batch *b, struct job *j)
{
    struct exti_entry *e = exti__manifest_find(&b->s->manifest, j->making.e.source), gone;

    if (j->old.source) {
        gone = *e;
        *e = j->old;
    } else {
        exti__manifest_take(&b->s->manifest, e, &gone);
    }
    j->old = (struct exti_entry){0};
    exti__entry_clear(&gone);
}

static void complete(struct batch *b, struct job *j)
{
    const struct exti_entry *from = &j->making.e;
    struct exti_entry *e = exti__manifest_find(&b->s->manifest, from->source);

    e->copy_size = from->copy_size;
    e->copy_mtime_ns = from->copy_mtime_ns;
    e->synced = from->synced;
    memcpy(e->boot, from->boot, sizeof e->boot);
    e->unwritten = false;
    b->s->dirty = true;
    exti__entry_clear(&j->old);
}

/* Takes in what has been done, in the order of planning, and tells how far that has come.  No walk may be
 * under way, as entries may go. */
static int collect(struct batch *b, struct exti_error *err)
{
    int rc = 0;

    while (!rc && b->collected < b->job_count) {
        struct job *j = b->jobs[b->collected];
        bool done;

        pthread_mutex_lock(&b->lock);
        done = j->done;
        pthread_mutex_unlock(&b->lock);
        if (!done)
            break;
        if (j->rc) {
            exti__error_file(&j->err, j->making.e.source);
            rc = j->rc == EXTI_E_NOMEM ? exti__fail_nomem(err)
                                       : note_failure(b, j->making.e.source, &j->err, err);
            take_back(b, j);
        } else {
            complete(b, j);
        }
        exti__free(j);
        b->jobs[b->collected++] = NULL;
    }
    return rc;
}

/* Drops what nobody has begun to write, waits for the rest and takes that in. */
static void abandon(struct batch *b)
{
    struct job *j;

    pthread_mutex_lock(&b->lock);
    while ((j = pop(b))) {
        exti__making_clear(&j->making);
        j->rc = EXTI_E_BUSY;
        j->done = true;
    }
    pthread_mutex_unlock(&b->lock);
}

/* ---- planning ------------------------------------------------------------------------------------ */

/* Of a file's number. */
static bool is_library(const struct batch *b, size_t i)
{
    return i >= b->count - b->opts->libraries;
}

static int add_job(struct batch *b, struct job *j, struct exti_error *err)
{
    if (b->job_count == b->job_cap) {
        const size_t cap = b->job_cap ? 2 * b->job_cap : 64;
        struct job **grown = exti__realloc_array(b->jobs, cap, sizeof *grown);

        if (!grown)
            return exti__fail_nomem(err);
        b->jobs = grown;
        b->job_cap = cap;
    }
    b->jobs[b->job_count++] = j;
    return 0;
}

/* The entry goes to the manifest at once: so that names are not given twice, and as other files' walks
 * come by. */
static int put_unwritten(struct batch *b, struct job *j, struct exti_error *err)
{
    struct exti_manifest *m = &b->s->manifest;
    struct exti_entry *old = exti__manifest_find(m, j->making.e.source), e = j->making.e;
    int rc = old ? 0 : exti__manifest_reserve(m, 1, err);

    if (!rc)
        rc = add_job(b, j, err);
    if (rc)
        return rc;
    e.unwritten = true;
    e.batch = b->s->batch;
    if (old) {
        j->old = *old;
        *old = e;
        return 0;
    }
    return exti__manifest_put(m, &e, err);
}

static int plan(struct batch *b, const struct root *r, const struct exti_step *at,
                struct exti_error *err)
{
    struct job *j = exti__calloc(1, sizeof *j);
    const struct exti_copy_request request = {
        .source = at->source, .first = r->real, .root = !at->user && !is_library(b, b->walked)};
    int rc = j ? exti__store_plan(b->s, &request, &j->making, err) : exti__fail_nomem(err);

    if (rc) {
        exti__free(j);
        return rc;
    }
    rc = put_unwritten(b, j, err);
    if (rc) {
        exti__making_clear(&j->making);
        exti__entry_clear(&j->making.e);
        exti__free(j);
        return rc;
    }
    enqueue(b, j);
    return 0;
}

/* Sees to one file of a walk.  *on: the walk goes on with what the file needs. */
static int visit(struct batch *b, const struct root *r, const struct exti_step *at, bool *on,
                 struct exti_error *err)
{
    struct exti_entry *e = exti__manifest_find(&b->s->manifest, at->source);

    *on = !e || e->batch != b->s->batch;
    if (!*on)
        return 0;
    if (e && (e == &b->s->manifest.api || exti__store_is_fresh(b->s, r->real, e, false))) {
        e->batch = b->s->batch;
        return 0;
    }
    return plan(b, r, at, err);
}

/* Plans what `r` drags in.  A file that cannot be planned ends the walk: what is left of it belongs to
 * files that need that one, whichever walk comes by them. */
static int walk(struct batch *b, struct root *r, struct exti_error *err)
{
    struct exti_steps p = {0};
    struct exti_error why = {0};
    int rc = exti__steps_push(&p, r->real, NULL) ? 0 : exti__fail_nomem(err);

    while (!rc && p.count) {
        const struct exti_step at = p.steps[--p.count];
        bool on;

        if (find_failure(b, at.source))
            break;
        rc = visit(b, r, &at, &on, &why);
        if (rc == EXTI_E_NOMEM) {
            exti__fail_nomem(err);
        } else if (rc) {
            rc = note_failure(b, at.source, &why, err);
            break;
        } else if (on &&
                   !exti__steps_push_needs(&p, exti__manifest_find(&b->s->manifest, at.source))) {
            rc = exti__fail_nomem(err);
        }
    }
    exti__free(p.steps);
    return rc;
}

/* Whether there is anything to be done for a file. */
static int ask(struct batch *b, struct root *r, bool *wanted, struct exti_error *err)
{
    const struct exti_entry *e = r->real ? exti__manifest_find(&b->s->manifest, r->real) : NULL;
    struct exti_error why = {0};
    char text[512];
    int rc;

    *wanted = r->real && e != &b->s->manifest.api;
    if (!*wanted || e || !is_library(b, b->walked))
        return 0;
    rc = exti__store_classify(b->s, r->real, wanted, text, sizeof text, &why);
    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    if (rc) {
        exti__error_file(&why, r->real);
        *wanted = false;
        return find_failure(b, r->real) ? 0 : note_failure(b, r->real, &why, err);
    }
    r->shared = *wanted ? NULL : exti__strdup(text);
    return *wanted || r->shared ? 0 : exti__fail_nomem(err);
}

static int plan_root(struct batch *b, size_t i, struct exti_error *err)
{
    struct root *r = &b->roots[i];
    bool wanted;
    int rc;

    b->s->images.keeps = true;
    rc = ask(b, r, &wanted, err);
    if (!rc && wanted)
        rc = walk(b, r, err);
    exti__image_cache_end(&b->s->images);
    r->jobs = b->job_count;
    b->walked = i + 1;
    return rc;
}

/* ---- telling ------------------------------------------------------------------------------------- */

/* Whether the file and all that it drags in have their copies; *why, which is empty, else. */
static int judge(struct batch *b, const struct root *r, struct exti_error *why,
                 struct exti_error *err)
{
    struct exti_store *s = b->s;
    struct exti_steps p = {0};
    bool good = !b->failures || exti__steps_push(&p, r->real, NULL);

    s->walk++;
    while (good && p.count) {
        const struct exti_step at = p.steps[--p.count];
        const struct failure *f = find_failure(b, at.source);
        struct exti_entry *e = exti__manifest_find(&s->manifest, at.source);

        if (f) {
            *why = f->err;
            exti__error_add_requester(&at, why);
            break;
        }
        if (!e || e->seen == s->walk)
            continue;
        e->seen = s->walk;
        good = exti__steps_push_needs(&p, e);
    }
    exti__free(p.steps);
    return good ? 0 : exti__fail_nomem(err);
}

static int tell_root(struct batch *b, size_t i, struct exti_error *err)
{
    struct root *r = &b->roots[i];
    struct exti_error why = {0};
    struct exti_copied told = {.size = sizeof told, .index = i, .shared = r->shared};
    const struct exti_entry *e = r->real ? exti__manifest_find(&b->s->manifest, r->real) : NULL;
    const char *source;
    int rc = 0;

    if (r->err)
        why = *r->err;
    else if (!r->shared)
        rc = judge(b, r, &why, err);
    if (!rc && !why.code && !r->shared)
        rc = exti__store_export_paths(b->s, e, &told.copy, &source, err);
    if (rc)
        return rc;
    if (why.code) {
        exti__error_name_original(b->originals[i], r->real ? r->real : "", &why);
        told.error = &why;
        if (!b->failed)
            b->first = why;
        b->failed = true;
    } else {
        told.made = e && e->made;
    }
    b->stopped = b->opts->copied && b->opts->copied(b->opts->user, &told);
    return 0;
}

/* Tells of the files that are done. */
static int tell(struct batch *b, struct exti_error *err)
{
    int rc = collect(b, err);

    while (!rc && !b->stopped && b->told < b->walked && b->roots[b->told].jobs <= b->collected)
        rc = tell_root(b, b->told++, err);
    return rc;
}

/* ---- the batch ----------------------------------------------------------------------------------- */

static int plan_all(struct batch *b, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < b->count && !rc && !b->stopped; i++) {
        rc = plan_root(b, i, err);
        if (!rc)
            rc = tell(b, err);
        if (!rc)
            rc = exti__store_save_if_due(b->s, err);
    }
    return rc;
}

static void wait_for_one(struct batch *b)
{
    pthread_mutex_lock(&b->lock);
    while (!b->jobs[b->collected]->done)
        pthread_cond_wait(&b->done, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

/* Writes what is still planned, or gives it up, and leaves no helper. */
static int finish(struct batch *b, int rc, struct exti_error *err)
{
    while (b->collected < b->job_count) {
        int told;

        if (rc || b->stopped)
            abandon(b);
        if (!write_one(b))
            wait_for_one(b);
        told = rc ? collect(b, NULL) : tell(b, err);
        rc = rc ? rc : told;
    }
    pthread_mutex_lock(&b->lock);
    b->closing = true;
    pthread_cond_broadcast(&b->more);
    pthread_mutex_unlock(&b->lock);
    for (size_t i = 0; i < b->helper_count; i++)
        pthread_join(b->helpers[i], NULL);
    if (b->s->dirty && !b->s->one_shot) {
        int saved = exti__store_save(b->s, rc ? NULL : err);

        rc = rc ? rc : saved;
    }
    return rc;
}

static int run_locked(struct batch *b, struct exti_error *err)
{
    struct exti_lock lock;
    int rc = exti__store_lock(b->s, &lock, err);

    if (rc)
        return rc;
    rc = exti__store_reload(b->s, err);
    if (!rc) {
        b->s->batch++;
        rc = plan_all(b, err);
        rc = finish(b, rc, err);
    }
    exti__fs_unlock(&lock);
    return rc;
}

/* Before the store's mutex is taken, which this does itself. */
static int find_roots(struct batch *b, struct exti_error *err)
{
    struct exti_tracer tracer = {0};
    int rc = 0;

    for (size_t i = 0; i < b->count && !rc; i++) {
        struct root *r = &b->roots[i];
        struct exti_error why = {0};

        if (!exti__store_trace_next(b->s, &tracer, b->originals[i], &r->real, &why))
            continue;
        r->err = why.code == EXTI_E_NOMEM ? NULL : exti__alloc(sizeof why);
        if (r->err)
            *r->err = why;
        else
            rc = exti__fail_nomem(err);
    }
    exti__tracer_end(&tracer);
    return rc;
}

static size_t processors(void)
{
#ifdef _WIN32
    int n = pthread_num_processors_np();
#else
    long n = sysconf(_SC_NPROCESSORS_ONLN);
#endif

    return n > 0 ? (size_t)n : 1;
}

static int make_room(struct batch *b, struct exti_error *err)
{
    size_t threads = b->opts->threads ? b->opts->threads : processors();

    b->helper_max = (threads < MAX_THREADS ? threads : MAX_THREADS) - 1;
    b->roots = exti__calloc(b->count, sizeof *b->roots);
    b->helpers = exti__calloc(b->helper_max, sizeof *b->helpers);
    return b->roots && b->helpers ? 0 : exti__fail_nomem(err);
}

static void free_batch(struct batch *b)
{
    for (size_t i = 0; b->roots && i < b->count; i++) {
        exti__free(b->roots[i].real);
        exti__free(b->roots[i].err);
        exti__free(b->roots[i].shared);
    }
    exti__tree_free(&b->failures, by_source, exti__free);
    exti__free(b->roots);
    exti__free(b->helpers);
    exti__free(b->jobs);
    pthread_cond_destroy(&b->more);
    pthread_cond_destroy(&b->done);
    pthread_mutex_destroy(&b->lock);
}

int exti__store_copy_many(struct exti_store *s, const char *const *originals, size_t count,
                          const struct exti_copy_opts *opts, struct exti_error *err)
{
    struct batch b = {.s = s, .originals = originals, .opts = opts, .count = count};
    int rc;

    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.more, NULL);
    pthread_cond_init(&b.done, NULL);
    rc = make_room(&b, err);
    if (!rc)
        rc = find_roots(&b, err);
    if (!rc) {
        pthread_mutex_lock(&s->lock);
        rc = run_locked(&b, err);
        pthread_mutex_unlock(&s->lock);
    }
    if (!rc && b.failed) {
        rc = b.first.code;
        if (err)
            *err = b.first;
    }
    free_batch(&b);
    return rc;
}
