/* Several contexts are made at once, each by several threads. */
#include "cli/tree/tree_copy.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/choice.h"
#include "cli/os/memory.h"
#include "cli/output/progress.h"
#include "cli/tree/tree_report.h"

struct copying {
    const struct cli_tree_job *job;
    pthread_mutex_t lock; /* guards what follows, and the results that contexts share */
    size_t next;          /* context */
    size_t done;
    struct cli_progress *bar;
};

/* One context's share. */
struct pass {
    struct copying *all;
    struct cli_tree_context *context;
    size_t index; /* of the context */
};

static int note_copied(void *user, const struct exti_copied *file)
{
    struct pass *p = user;
    struct copying *all = p->all;
    struct cli_tree_context *c = p->context;
    struct cli_tree_result *t = &all->job->report->results[all->job->results[file->index]];

    pthread_mutex_lock(&all->lock);
    t->copies[p->index] = file->copy;
    c->made += file->copy != NULL && file->made;
    c->fresh += file->copy != NULL && !file->made;
    if (file->error != NULL && t->error == NULL) {
        t->error = cli_alloc(sizeof *t->error);
        *t->error = *file->error;
    }
    if (file->shared != NULL && t->shared == NULL)
        t->shared = cli_copy_text(file->shared);
    cli_progress_step(all->bar, ++all->done, t->file->path);
    pthread_mutex_unlock(&all->lock);
    return 0;
}

/* Divides the threads among the contexts that are made at the same time; one more plans. */
static size_t threads_per_context(const struct cli_tree_job *job)
{
    const size_t contexts = job->report->context_count;

    return job->threads == 1
               ? 1
               : job->threads / (job->threads < contexts ? job->threads : contexts) + 1;
}

static void copy_files(struct pass *p)
{
    const struct cli_tree_job *job = p->all->job;
    struct exti_copy_opts opts = {.size = sizeof opts,
                                  .libraries = job->libraries,
                                  .threads = threads_per_context(job),
                                  .copied = note_copied,
                                  .user = p};
    struct exti_error err = {0};

    if (exti_copy_many(p->context->ctx, job->paths, job->count, &opts, &err) != 0)
        p->context->err = err;
}

static void copy_context(struct copying *all, size_t index)
{
    const struct cli_tree_job *job = all->job;
    struct pass p = {all, &job->report->contexts[index], index};
    char name[CLI_TREE_NAME_MAX + 16];
    struct exti_ctx_opts opts = {.size = sizeof opts,
                                 .dir = p.context->dir,
                                 .name = job->name != NULL ? name : NULL,
                                 .api_library = job->libpython,
                                 .flags = job->flags | EXTI_CTX_COPY_ONLY | EXTI_CTX_DROP_UNUSED};

    if (job->name != NULL)
        snprintf(name, sizeof name, "%s-%zu", job->name, index);
    cli_choice_apply(job->choice, &opts);
    if (exti_ctx_open(&p.context->ctx, &opts, &p.context->err) == 0)
        copy_files(&p);
}

static void *copy_contexts(void *user)
{
    struct copying *all = user;

    for (;;) {
        pthread_mutex_lock(&all->lock);
        size_t index = all->next++;
        pthread_mutex_unlock(&all->lock);
        if (index >= all->job->report->context_count)
            return NULL;
        copy_context(all, index);
    }
}

void cli_tree_copy(const struct cli_tree_job *job)
{
    struct copying all = {.job = job, .lock = PTHREAD_MUTEX_INITIALIZER};
    size_t n = job->report->context_count, started = 0;
    size_t want = n < job->threads ? n : job->threads;
    pthread_t *threads = cli_zeroed(want, sizeof *threads);

    all.bar = cli_progress_start("copying", job->count * n);
    while (started + 1 < want && pthread_create(&threads[started], NULL, copy_contexts, &all) == 0)
        started++;
    copy_contexts(&all);
    while (started > 0)
        pthread_join(threads[--started], NULL);
    free(threads);
    cli_progress_end(all.bar);
    pthread_mutex_destroy(&all.lock);
}
