#include "bindings/python/ext/core.h"

#include <pthread.h>
#include <stdatomic.h>

#include "bindings/python/ext/entries.h"
#include "bindings/python/ext/queues.h"

struct pkg_heaps pkg_core_heaps = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                   .collecting = PTHREAD_MUTEX_INITIALIZER,
                                   .most = PKG_COLLECT_FROM};

static struct extipy_python *installation;
static pthread_mutex_t installation_lock = PTHREAD_MUTEX_INITIALIZER;

/* All contexts have this one library, and what it needs comes with it. */
static const struct exti_rule rules[] = {{.glob = "libextisolate*.so*", .share = 1}};

int pkg_core_find(const char *executable, const struct extipy_python **out, struct exti_error *err)
{
    int rc = 0;

    pthread_mutex_lock(&installation_lock);
    if (!installation)
        rc = extipy_find(&installation, executable, err);
    if (rc == 0)
        *out = installation;
    pthread_mutex_unlock(&installation_lock);
    return rc;
}

void pkg_core_stop(void)
{
    atomic_store(&pkg_users.stopped, 1);
}

/* A stream that nobody is called with is the process's. */
static void set_output(struct extipy_opts *opts, extipy_output_fn output, struct pkg_entry *e)
{
    if (!e->streams)
        return;
    opts->output = output;
    opts->output_user = e;
    opts->stdout_fd = e->streams & EXTIPY_STDOUT ? 0 : 1;
    opts->stderr_fd = e->streams & EXTIPY_STDERR ? 0 : 2;
}

int pkg_core_open(uint64_t *id, const struct pkg_opening *how, extipy_output_fn output,
                  struct exti_error *err)
{
    struct extipy_opts opts = {.size = sizeof opts,
                               .rules = rules,
                               .rule_count = sizeof rules / sizeof *rules,
                               .settings = how->settings,
                               .setting_count = how->setting_count,
                               .on_caller = how->on_caller,
                               .flags = how->on_caller ? EXTI_CTX_ENTER_DIRECTORY : 0};
    struct pkg_entry *e;
    int rc;

    rc = pkg_entries_may_use(err);
    if (rc < 0)
        return rc;
    e = pkg_entries_new(how);
    if (!e)
        return pkg_entries_fail(err, EXTI_E_NOMEM, "out of memory");
    set_output(&opts, output, e);
    rc = extipy_open(&e->ctx, installation, &opts, err);
    if (rc < 0) {
        pkg_entries_give_up(e);
        return rc;
    }
    pkg_entries_publish(e);
    *id = e->number;
    return 0;
}

int pkg_core_start(uint64_t id, const char *source, struct exti_error *err)
{
    struct pkg_entry *e = pkg_entries_find(id);
    int rc;

    if (!e || !e->ctx)
        return pkg_entries_unknown(err, id);
    rc = extipy_exec(e->ctx, source, NULL, err);
    if (rc == 0)
        atomic_store(&e->ready, 1);
    return rc;
}

void pkg_core_forked(void)
{
    installation_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pkg_entries_forked();
    pkg_queue_forked();
    pkg_core_heaps.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pkg_core_heaps.collecting = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pkg_core_heaps.first = NULL;
    atomic_store(&pkg_core_heaps.count, 0);
}

/* ---- the end ---- */

/* Whether the entry can be closed, by now or after a wait.  Who watches. */
static int may_close(const struct pkg_entry *e, int wait, struct exti_error *err)
{
    const size_t users = pkg_entries_count_seen(e);

    if (users && !wait)
        return pkg_entries_fail(err, EXTIPY_E_STATE, "the interpreter is running");
    if (users && pkg_entries_is_inside(e))
        return pkg_entries_fail(err, EXTIPY_E_PLACE, "this thread is in a call of the interpreter");
    return 0;
}

/* Lets no call begin, and waits until nobody uses it any more.  Who watches. */
static int stop_use(struct pkg_entry *e, int wait, struct exti_error *err)
{
    int rc;

    atomic_store(&e->closing, PKG_CLOSING);
    rc = may_close(e, wait, err);
    while (rc == 0 && pkg_entries_count_seen(e))
        pthread_cond_wait(&pkg_users.changed, &pkg_users.lock);
    atomic_store(&e->closing, rc == 0 ? PKG_CLOSED : PKG_OPEN);
    return rc;
}

static int begin_close(struct pkg_entry **out, uint64_t id, int wait, struct exti_error *err)
{
    struct pkg_entry *e;
    int rc;

    pkg_entries_watch();
    e = pkg_entries_find(id);
    if (!e || atomic_load(&e->closing))
        rc = pkg_entries_unknown(err, id);
    else if (!e->ctx)
        rc = pkg_entries_fail(err, EXTIPY_E_PLACE, "the main interpreter cannot be closed");
    else
        rc = stop_use(e, wait, err);
    pkg_entries_unwatch();
    *out = e;
    return rc;
}

int pkg_core_close(uint64_t id, int wait, struct pkg_report *report, struct extipy_closed *out,
                   struct exti_error *err)
{
    struct pkg_entry *e;
    int rc = begin_close(&e, id, wait, err);

    if (rc < 0)
        return rc;
    rc = extipy_close(e->ctx, pkg_report_add, report, out, err);
    if (rc == EXTI_E_BUSY || rc == EXTIPY_E_PLACE) {
        atomic_store(&e->closing, PKG_OPEN);
        return rc;
    }
    pkg_heap_abandon(&pkg_core_heaps, id);
    pkg_entries_give_up(e);
    return rc;
}

struct listing {
    uint64_t *ids;
    size_t room, n;
};

/* Main, and those that have been started. */
static void list(void *user, const struct pkg_entry *e)
{
    struct listing *l = user;

    if (e->ctx && (!atomic_load(&e->ready) || atomic_load(&e->closing)))
        return;
    if (l->n < l->room)
        l->ids[l->n] = e->number;
    l->n++;
}

size_t pkg_core_list(uint64_t *ids, size_t room)
{
    struct listing l = {ids, room, 0};

    pkg_entries_each(list, &l);
    return l.n;
}
