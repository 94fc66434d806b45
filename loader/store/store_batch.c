/* Many copies at once.
 *
 * The calling thread goes through the files in their order, plans each copy and puts it into the
 * manifest; helpers write the copies, and so does the caller when it is far enough ahead.  The
 * result depends on that order alone, as if there were one thread.  A file is reported, in the
 * files' order too, when its copy and all that were planned before it are written. */
#include <search.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_lock.h"
#include "loader/store/store_copy.h"
#include "loader/store/store_fresh.h"
#include "loader/store/store_graph.h"
#include "loader/store/store_lock.h"
#include "loader/store/store_make.h"
#include "loader/store/store_save.h"
#include "loader/store/store_trace.h"
#include "loader/store/store_walk.h"
#include "loader/store/write_queue.h"

struct job {
    struct exti_write_job write; /* its entry's strings are the manifest's */
    struct exti_entry old;       /* the entry that the new one replaces; source NULL: none */
};

/* A file whose copy failed. */
struct failure {
    const char *source; /* in the same block */
    struct exti_error err;
};

/* A file that was asked for. */
struct root {
    char *real;             /* owned; NULL if it could not be found */
    struct exti_error *err; /* owned; why it could not be found */
    size_t jobs;            /* how many must be written before it is reported */
    char *shared;           /* owned; why it needs no copy; NULL: it needs one */
};

struct batch {
    struct exti_store *s;
    const char *const *originals;
    const struct exti_copy_opts *opts;
    struct root *roots;
    size_t count;
    size_t walked, reported; /* `walked` is also the root whose walk is under way */
    struct job **jobs;       /* owned; NULL once collected */
    size_t job_count, job_cap, collected;
    void *failures; /* tree of struct failure, by source */
    bool failed;    /* whether a root did; the first one with this error: */
    struct exti_error first;
    bool stopped; /* by the caller's wish */
    struct exti_write_queue queue;
};

/* ---- what became of the plans ---- */

static int failure_order(const void *a, const void *b)
{
    const struct failure *x = a, *y = b;

    return strcmp(x->source, y->source);
}

static const struct failure *find_failure(const struct batch *b, const char *source)
{
    const struct failure key = {.source = source};
    struct failure *const *node = tfind(&key, &b->failures, failure_order);

    return node ? *node : NULL;
}

static int record_failure(struct batch *b, const char *source, const struct exti_error *why,
                          struct exti_error *err)
{
    const size_t n = strlen(source) + 1;
    struct failure *f = exti__alloc(sizeof *f + n);

    if (!f)
        return exti__fail_nomem(err);
    f->source = memcpy(f + 1, source, n);
    f->err = *why;
    if (tsearch(f, &b->failures, failure_order))
        return 0;
    exti__free(f);
    return exti__fail_nomem(err);
}

/* Puts the entry back that the failed job replaced.  Until now the manifest had the new one's
 * strings. */
static void restore_entry(struct batch *b, struct job *j)
{
    struct exti_entry *e = exti__manifest_find(&b->s->manifest, j->write.making.e.source), gone;

    if (j->old.source) {
        gone = *e;
        *e = j->old;
    } else {
        exti__manifest_take(&b->s->manifest, e, &gone);
    }
    j->old = (struct exti_entry){0};
    exti__entry_clear(&gone);
}

static void complete_entry(struct batch *b, struct job *j)
{
    const struct exti_entry *from = &j->write.making.e;
    struct exti_entry *e = exti__manifest_find(&b->s->manifest, from->source);

    e->copy_id = from->copy_id;
    memcpy(e->copy_hash, from->copy_hash, sizeof e->copy_hash);
    e->left_out = from->left_out;
    e->unloaded = from->unloaded;
    e->synced = from->synced;
    memcpy(e->boot, from->boot, sizeof e->boot);
    e->marks.unwritten = false;
    b->s->dirty = true;
    exti__entry_clear(&j->old);
}

/* Takes in what has been written, in the order of planning, up to the first job that is not
 * done.  Removes entries, so no walk may be under way. */
static int collect_written(struct batch *b, struct exti_error *err)
{
    int rc = 0;

    while (!rc && b->collected < b->job_count) {
        struct job *j = b->jobs[b->collected];
        struct exti_write_job *w = &j->write;

        if (!exti__write_queue_is_done(&b->queue, w))
            break;
        if (w->rc) {
            exti__error_file(&w->err, w->making.e.source);
            rc = w->rc == EXTI_E_NOMEM ? exti__fail_nomem(err)
                                       : record_failure(b, w->making.e.source, &w->err, err);
            restore_entry(b, j);
        } else {
            complete_entry(b, j);
        }
        exti__free(j);
        b->jobs[b->collected++] = NULL;
    }
    return rc;
}

/* ---- planning ---- */

/* The last of the files are libraries, copied only if something could need them. */
static bool is_library_index(const struct batch *b, size_t i)
{
    return i >= b->count - b->opts->libraries;
}

static int add_job(struct batch *b, struct job *j, struct exti_error *err)
{
    struct job **jobs = exti__array_room(b->jobs, b->job_count, &b->job_cap, sizeof *jobs);

    if (!jobs)
        return exti__fail_nomem(err);
    b->jobs = jobs;
    b->jobs[b->job_count++] = j;
    return 0;
}

/* The entry goes into the manifest before its copy is written: so no name is given twice, and
 * other files' walks see it. */
static int put_unwritten(struct batch *b, struct job *j, struct exti_error *err)
{
    struct exti_manifest *m = &b->s->manifest;
    struct exti_entry *old = exti__manifest_find(m, j->write.making.e.source),
                      e = j->write.making.e;
    int rc = old ? 0 : exti__manifest_reserve(m, 1, err);

    if (!rc)
        rc = add_job(b, j, err);
    if (rc)
        return rc;
    e.marks.unwritten = true;
    e.marks.batch = b->s->batch;
    if (old) {
        j->old = *old;
        *old = e;
        return 0;
    }
    return exti__manifest_put(m, &e, err);
}

static int plan_copy(struct batch *b, const struct root *r, const struct exti_step *at,
                     struct exti_error *err)
{
    struct job *j = exti__calloc(1, sizeof *j);
    const struct exti_copy_request request = {.source = at->source,
                                              .first = r->real,
                                              .root = !at->user && !is_library_index(b, b->walked)};
    int rc = j ? exti__store_plan(b->s, &request, &j->write.making, err) : exti__fail_nomem(err);

    if (rc) {
        exti__free(j);
        return rc;
    }
    rc = put_unwritten(b, j, err);
    if (rc) {
        exti__making_clear(&j->write.making);
        exti__entry_clear(&j->write.making.e);
        exti__free(j);
        return rc;
    }
    exti__write_queue_add(&b->queue, &j->write);
    return 0;
}

/* Plans one file of a walk unless this batch has seen it.  *on: the walk goes on with what the
 * file needs. */
static int visit_step(struct batch *b, const struct root *r, const struct exti_step *at, bool *on,
                      struct exti_error *err)
{
    struct exti_entry *e = exti__manifest_find(&b->s->manifest, at->source);

    *on = !e || e->marks.batch != b->s->batch;
    if (!*on)
        return 0;
    if (e && (e == &b->s->manifest.api || exti__store_is_fresh(b->s, r->real, e, false))) {
        e->marks.batch = b->s->batch;
        return 0;
    }
    return plan_copy(b, r, at, err);
}

/* Plans `r` and its dependencies.  A file that cannot be planned ends the walk.  Files not visited
 * by then are planned by the walks of other files that need them. */
static int plan_walk(struct batch *b, struct root *r, struct exti_error *err)
{
    struct exti_steps p = {0};
    struct exti_error why = {0};
    int rc = exti__steps_push(&p, r->real, NULL) ? 0 : exti__fail_nomem(err);

    while (!rc && p.count) {
        const struct exti_step at = p.steps[--p.count];
        bool on;

        if (find_failure(b, at.source))
            break;
        rc = visit_step(b, r, &at, &on, &why);
        if (rc == EXTI_E_NOMEM) {
            exti__fail_nomem(err);
        } else if (rc) {
            rc = record_failure(b, at.source, &why, err);
            break;
        } else if (on &&
                   !exti__steps_push_needs(&p, exti__manifest_find(&b->s->manifest, at.source))) {
            rc = exti__fail_nomem(err);
        }
    }
    exti__free(p.steps);
    return rc;
}

/* Whether a copy of the file is wanted.  If not, for it can be shared, sets r->shared. */
static int is_wanted(struct batch *b, struct root *r, bool *wanted, struct exti_error *err)
{
    const struct exti_entry *e = r->real ? exti__manifest_find(&b->s->manifest, r->real) : NULL;
    struct exti_error why = {0};
    char text[512];
    int rc;

    *wanted = r->real && e != &b->s->manifest.api;
    if (e == &b->s->manifest.api)
        b->s->drop_unused = false;
    if (!*wanted || e || !is_library_index(b, b->walked))
        return 0;
    rc = exti__store_classify(b->s, r->real, wanted, text, sizeof text, &why);
    if (rc == EXTI_E_NOMEM)
        return exti__fail_nomem(err);
    if (rc) {
        exti__error_file(&why, r->real);
        *wanted = false;
        return find_failure(b, r->real) ? 0 : record_failure(b, r->real, &why, err);
    }
    r->shared = *wanted ? NULL : exti__strdup(text);
    return *wanted || r->shared ? 0 : exti__fail_nomem(err);
}

static int plan_root(struct batch *b, size_t i, struct exti_error *err)
{
    struct root *r = &b->roots[i];
    bool wanted;
    int rc;

    exti__image_cache_begin(&b->s->images);
    rc = is_wanted(b, r, &wanted, err);
    if (!rc && wanted)
        rc = plan_walk(b, r, err);
    exti__image_cache_end(&b->s->images);
    r->jobs = b->job_count;
    b->walked = i + 1;
    return rc;
}

/* ---- reporting ---- */

/* Whether the file and its dependencies have their copies; if not, *why, zeroed before,
 * tells the first failure. */
static int check_copies(struct batch *b, const struct root *r, struct exti_error *why,
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
        if (!e || e->marks.walk == s->walk)
            continue;
        e->marks.walk = s->walk;
        good = exti__steps_push_needs(&p, e);
    }
    exti__free(p.steps);
    return good ? 0 : exti__fail_nomem(err);
}

static int report_root(struct batch *b, size_t i, struct exti_error *err)
{
    struct root *r = &b->roots[i];
    struct exti_error why = {0};
    struct exti_copied info = {.size = sizeof info, .index = i, .shared = r->shared};
    const struct exti_entry *e = r->real ? exti__manifest_find(&b->s->manifest, r->real) : NULL;
    const char *source;
    int rc = 0;

    if (r->err)
        why = *r->err;
    else if (!r->shared)
        rc = check_copies(b, r, &why, err);
    if (!rc && !why.code && !r->shared)
        rc = exti__store_export_paths(b->s, e, &info.copy, &source, err);
    if (rc)
        return rc;
    if (why.code) {
        exti__error_name_original(b->originals[i], r->real ? r->real : "", &why);
        info.error = &why;
        if (!b->failed)
            b->first = why;
        b->failed = true;
    } else {
        info.made = e && e->marks.made;
    }
    b->stopped = b->opts->copied && b->opts->copied(b->opts->user, &info);
    return 0;
}

/* Reports the roots whose jobs are all written. */
static int report_written(struct batch *b, struct exti_error *err)
{
    int rc = collect_written(b, err);

    while (!rc && !b->stopped && b->reported < b->walked &&
           b->roots[b->reported].jobs <= b->collected)
        rc = report_root(b, b->reported++, err);
    return rc;
}

/* ---- the batch ---- */

static int plan_all(struct batch *b, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < b->count && !rc && !b->stopped; i++) {
        rc = plan_root(b, i, err);
        if (!rc)
            rc = report_written(b, err);
        if (!rc)
            rc = exti__store_save_if_due(b->s, err);
    }
    return rc;
}

/* Writes what is still planned, or after a failure gives it up, and ends all helpers. */
static int finish_jobs(struct batch *b, int rc, struct exti_error *err)
{
    while (b->collected < b->job_count) {
        int reported;

        if (rc || b->stopped)
            exti__write_queue_abandon(&b->queue);
        if (!exti__write_queue_write_one(&b->queue))
            exti__write_queue_wait(&b->queue, &b->jobs[b->collected]->write);
        reported = rc ? collect_written(b, NULL) : report_written(b, err);
        rc = rc ? rc : reported;
    }
    exti__write_queue_join(&b->queue);
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
        rc = finish_jobs(b, rc, err);
    }
    exti__fs_unlock(&lock);
    return rc;
}

/* Takes the store's mutex itself. */
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

static void free_batch(struct batch *b)
{
    for (size_t i = 0; b->roots && i < b->count; i++) {
        exti__free(b->roots[i].real);
        exti__free(b->roots[i].err);
        exti__free(b->roots[i].shared);
    }
    exti__tree_free(&b->failures, failure_order, exti__free);
    exti__free(b->roots);
    exti__free(b->jobs);
    exti__write_queue_free(&b->queue);
}

int exti__store_copy_many(struct exti_store *s, const char *const *originals, size_t count,
                          const struct exti_copy_opts *opts, struct exti_error *err)
{
    struct batch b = {.s = s, .originals = originals, .opts = opts, .count = count};
    int rc;

    rc = exti__write_queue_init(&b.queue, s, opts->threads, err);
    if (!rc) {
        b.roots = exti__calloc(count, sizeof *b.roots);
        rc = b.roots ? find_roots(&b, err) : exti__fail_nomem(err);
    }
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
