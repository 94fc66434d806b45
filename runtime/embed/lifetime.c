/* How a context begins and ends. */
#include <stdlib.h>
#include <string.h>

#include "runtime/embed/exiting.h"
#include "runtime/embed/exporter.h"
#include "runtime/embed/finalise.h"
#include "runtime/embed/installation.h"
#include "runtime/embed/jobs.h"
#include "runtime/embed/object.h"
#include "runtime/embed/options.h"
#include "runtime/embed/output.h"
#include "runtime/embed/threads.h"
#include "runtime/fail.h"
#include "runtime/host.h"
#include "runtime/module.h"
#include "runtime/start.h"
#include "runtime/system.h"

/* What the opener tells the context's thread, and learns from it; it waits meanwhile. */
struct opening {
    struct extipy_ctx *ctx;
    const struct extipy_python *python;
    struct extipy_opts opts;
    int rc;
    struct exti_error *err;
};

/* ---- the start, on the context's thread ---- */

static int open_loader(struct opening *o)
{
    const struct exti_hooks hooks = {.size = sizeof hooks,
                                     .can_exit = extipy__can_exit,
                                     .exit = extipy__exit,
                                     .abort = extipy__tell_abort};
    struct exti_ctx_opts opts = {
        .size = sizeof opts,
        .hooks = &hooks,
        .user = o->ctx,
        .dir = o->opts.dir,
        .name = o->opts.name,
        .flags = o->opts.flags,
        .closure = o->opts.closure,
        .rules = o->opts.rules,
        .rule_count = o->opts.rule_count,
        .quirk_files = o->opts.quirk_files,
        .quirk_file_count = o->opts.quirk_file_count,
    };
    struct extipy_ctx *c = o->ctx;
    struct exti_module *libpython;
    int rc = pyrt_open(&c->loader, &c->py, &o->python->install, &opts, o->err);

    if (rc == 0)
        rc = exti_api(c->loader, &libpython, o->err);
    if (rc == 0)
        rc = extipy__calls_find(&c->calls, libpython, o->err);
    return rc;
}

/* threading takes the thread that imports it first for the main one, and joins others at the end
 * only if that is so. */
static int import_threading(const struct pyrt_api *py, struct exti_error *err)
{
    struct pyobj *m = py->PyImport_ImportModule("threading");

    if (!m) {
        py->PyErr_Clear();
        return pyrt_fail(err, EXTI_E_LOAD, "CPython did not start: cannot import threading");
    }
    py->Py_DecRef(m);
    return 0;
}

static int start_interpreter(struct opening *o)
{
    const char *none[] = {""}, *words[] = {o->python->install.executable};
    const struct pyrt_command command = {
        .words = words,
        .word_count = 1,
        .argv = o->opts.argv ? (const char **)o->opts.argv : none,
        .argc = o->opts.argv ? o->opts.argc : 1,
    };
    struct pyrt_startup how = {
        .python = &o->python->install,
        .command = &command,
        .setting_count = o->opts.setting_count,
        .keep = (o->opts.flags & EXTI_CTX_KEEP) != 0,
    };
    struct pyrt_setting *settings = extipy__options_settings(&o->opts);
    struct extipy_ctx *c = o->ctx;
    int rc;

    if (!settings)
        return pyrt_fail(o->err, EXTI_E_NOMEM, "out of memory");
    how.settings = settings;
    rc = pyrt_initialise(&c->heap, &c->py, &how, o->err);
    free(settings);
    if (rc < 0)
        return rc;
    rc = import_threading(&c->py, o->err);
    if (rc == 0)
        rc = pyrt_module_add(&c->py, c->loader, o->opts.index, o->opts.count ? o->opts.count : 1,
                             o->err);
    if (rc == 0)
        rc = extipy__output_begin(c, &o->opts, o->err);
    if (rc < 0) {
        extipy__finalise(&c->py);
        extipy__output_end(c);
    }
    return rc;
}

static struct pyobj *release_inside(struct extipy_ctx *c, const void *what)
{
    (void)what;
    extipy__objects_release(c);
    return NULL;
}

/* Releases what others have let go of, and takes the context's lock again. */
static void *release_unlocked(struct extipy_ctx *c, void *state)
{
    int ended;

    pthread_mutex_unlock(&c->lock);
    c->py.PyEval_RestoreThread(state);
    extipy__exiting_run(c, release_inside, NULL, &ended);
    if (!ended)
        state = c->py.PyEval_SaveThread();
    pthread_mutex_lock(&c->lock);
    return state;
}

/* Waits for the end; the thread has no GIL. */
static void *idle(struct extipy_ctx *c, void *state)
{
    pthread_mutex_lock(&c->lock);
    while ((c->phase != EXTIPY_ENDED && !extipy__has_emptied(c)) || extipy__jobs_due(c))
        if (extipy__jobs_due(c))
            state = extipy__jobs_tend(c, state);
        else if (c->released && !extipy__has_exited(c))
            state = release_unlocked(c, state);
        else
            pyrt_cond_wait(&c->changed, &c->lock, extipy__jobs_next(c));
    pthread_mutex_unlock(&c->lock);
    return state;
}

static int has_buffers(struct extipy_ctx *c)
{
    size_t buffers;

    pthread_mutex_lock(&c->lock);
    buffers = c->buffers;
    pthread_mutex_unlock(&c->lock);
    return buffers != 0;
}

/* Stops Python, and waits until nobody uses its memory any more. */
static void *park(struct extipy_ctx *c, void *state)
{
    c->py.PyEval_RestoreThread(state);
    extipy__stop(&c->py);
    state = c->py.PyEval_SaveThread();
    extipy__output_end(c);
    pthread_mutex_lock(&c->lock);
    c->parked = 1;
    pthread_cond_broadcast(&c->changed);
    while (c->buffers)
        if (c->released)
            state = release_unlocked(c, state);
        else
            pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    return state;
}

static void tell_started(struct extipy_ctx *c)
{
    pthread_mutex_lock(&c->lock);
    c->started = 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Makes the calling thread one of the context's own; it knows whether one of these has started
 * it. */
static void take_directory(struct opening *o)
{
    struct extipy_ctx *c = o->ctx;
    struct exti_error why = {0};

    if (o->opts.flags & EXTI_CTX_PROCESS_DIRECTORY)
        pyrt_fail(&c->directory_error, EXTI_E_UNSUPPORTED, "the context was opened without one");
    else if (exti_ctx_own_thread(c->loader, c->has_directory, &why) < 0)
        c->directory_error = why;
    else
        c->has_directory = 1;
}

/* On the thread that then is Python's main one. */
static int begin(struct opening *o)
{
    struct extipy_ctx *c = o->ctx;
    int rc = open_loader(o);
    void *outside;

    if (rc < 0)
        return rc;
    if (!c->on_caller || (o->opts.flags & EXTI_CTX_ENTER_DIRECTORY))
        take_directory(o);
    outside = exti_ctx_enter(c->loader);
    rc = start_interpreter(o);
    if (rc == 0)
        c->main_state = c->py.PyEval_SaveThread();
    exti_ctx_leave(outside);
    return rc;
}

static struct pyobj *finalise_inside(struct extipy_ctx *c, const void *what)
{
    (void)what;
    extipy__objects_end(c);
    c->py.Py_DecRef(c->exporter_type);
    extipy__finalise(&c->py);
    return NULL;
}

/* On the same thread. */
static void end(struct extipy_ctx *c)
{
    void *outside = exti_ctx_enter(c->loader);
    int ended = extipy__has_exited(c);

    if (!ended) {
        c->py.PyEval_RestoreThread(c->main_state);
        extipy__exiting_run(c, finalise_inside, NULL, &ended);
    }
    extipy__output_end(c);
    if (!ended)
        extipy__exporters_end(c);
    exti_ctx_leave(outside);
}

static void tell_finalised(struct extipy_ctx *c)
{
    pthread_mutex_lock(&c->lock);
    c->finalised = 1;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Python's main thread, which the context has for itself. */
static void *live(void *arg)
{
    struct opening *o = arg;
    struct extipy_ctx *c = o->ctx;
    int rc = begin(o);

    pyrt_name_thread("context");
    o->rc = rc;
    tell_started(c); /* the opener goes on, and `o` is gone */
    if (rc < 0)
        return NULL;
    exti_ctx_enter(c->loader);
    c->main_state = idle(c, c->main_state);
    if (extipy__has_exited(c))
        return extipy__exiting_keep_gil(c, c->main_state);
    if (has_buffers(c))
        c->main_state = park(c, c->main_state);
    end(c);
    tell_finalised(c);
    return extipy__has_exited(c) ? extipy__exiting_keep_gil(c, c->main_state) : NULL;
}

/* The context's own thread if the main one is the program's. */
static void *keep(void *arg)
{
    struct opening *o = arg;
    struct extipy_ctx *c = o->ctx;
    void *state = c->calls.PyThreadState_New(c->calls.PyInterpreterState_Main());

    pyrt_name_thread("context");
    if (!c->directory_error.code)
        take_directory(o);
    o->rc = state ? 0 : pyrt_fail(o->err, EXTI_E_NOMEM, "out of memory");
    tell_started(c);
    if (!state)
        return NULL;
    exti_ctx_enter(c->loader);
    state = idle(c, state);
    if (extipy__has_exited(c))
        return extipy__exiting_keep_gil(c, state);
    c->py.PyEval_RestoreThread(state);
    c->calls.PyThreadState_Clear(state);
    c->calls.PyThreadState_DeleteCurrent();
    tell_finalised(c);
    return NULL;
}

/* ---- opening ---- */

static int read_options(struct opening *o, const struct extipy_opts *given)
{
    int rc;

    if (given) {
        rc = extipy__options_read(&o->opts, sizeof o->opts, given, o->err);
        if (rc < 0)
            return rc;
    }
    for (size_t i = 0; i < o->opts.setting_count; i++)
        if (!o->opts.settings[i].name || (unsigned)o->opts.settings[i].kind > EXTIPY_SET_LIST)
            return pyrt_fail(o->err, EXTI_E_ARG, "setting %zu has no name, or no kind", i);
    if (o->opts.stdout_fd < 0 || o->opts.stderr_fd < 0)
        return pyrt_fail(o->err, EXTI_E_ARG, "stdout_fd or stderr_fd is negative");
    if (o->opts.index < 0 || o->opts.count < 0)
        return pyrt_fail(o->err, EXTI_E_ARG, "index or count is negative");
    if (o->opts.flags & (EXTI_CTX_COPY_ONLY | EXTI_CTX_FOR_LOADING))
        return pyrt_fail(o->err, EXTI_E_ARG,
                         "a context that is opened for copying only cannot run");
    return 0;
}

/* Closes the loader's context on a thread that was not in it, and gives back what it can. */
static int release_context(struct extipy_ctx *c, exti_report_fn report, void *user, size_t *left,
                           struct exti_error *err)
{
    int rc = 0;

    *left = 0;
    if (c->loader)
        rc = exti_ctx_close_report(c->loader, report, user, left, err);
    /* It may have ended since, and then something of it has stayed. */
    if (extipy__has_exited(c) || *left)
        extipy__exited_keep(c);
    else if (rc == 0)
        pyrt_heap_free(c->heap);
    /* What a context has freed may be in arenas that no later one uses. */
    pyrt_trim();
    extipy__context_unref(c);
    return rc;
}

/* Starts the context's own thread. */
static int start_keeper(struct opening *o, void *(*run)(void *opening))
{
    struct extipy_ctx *c = o->ctx;
    int rc = pyrt_thread_start(&c->keeper, run, o, o->err);

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&c->lock);
    while (!c->started)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    if (o->rc < 0)
        pthread_join(c->keeper, NULL);
    return o->rc;
}

static int start_on_caller(struct opening *o)
{
    struct extipy_ctx *c = o->ctx;
    int rc = begin(o);

    if (rc < 0)
        return rc;
    rc = extipy__threads_adopt(c, c->main_state, o->err);
    if (rc == 0 && (rc = start_keeper(o, keep)) < 0)
        extipy__threads_disown(c);
    if (rc < 0)
        end(c);
    return rc;
}

static int start_context(struct opening *o)
{
    struct extipy_ctx *c = o->ctx;
    size_t left;
    int rc;

    c->on_caller = o->opts.on_caller != 0;
    rc = c->on_caller ? start_on_caller(o) : start_keeper(o, live);
    if (rc < 0)
        release_context(c, NULL, NULL, &left, NULL);
    else
        extipy__contexts_add(c);
    return rc;
}

int extipy_open(struct extipy_ctx **out, const struct extipy_python *python,
                const struct extipy_opts *opts, struct exti_error *err)
{
    struct opening o = {.python = python, .err = err};
    struct extipy_attachment *paused;
    int rc;

    if (!out || !python)
        return pyrt_fail(err, EXTI_E_ARG, "out or python is NULL");
    rc = read_options(&o, opts);
    if (rc == 0)
        o.ctx = extipy__context_new();
    if (rc == 0 && (!o.ctx || !extipy__objects_begin(o.ctx)))
        rc = pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    if (rc == 0)
        rc = extipy__threads_pause(&paused, err);
    if (rc == 0) {
        rc = start_context(&o);
        extipy__threads_resume(paused);
    } else if (o.ctx) {
        extipy__context_unref(o.ctx);
    }
    if (rc == 0)
        *out = o.ctx;
    return rc;
}

/* ---- closing ---- */

static atomic_size_t lingering;

size_t extipy_lingering(void)
{
    return atomic_load(&lingering);
}

/* From now on nobody enters, and all who were inside have left.  The lock is held. */
static void shut(struct extipy_ctx *c)
{
    extipy__context_watch(c);
    c->phase = EXTIPY_CLOSING;
    pthread_mutex_unlock(&c->lock);
    extipy__jobs_end(c);
    pthread_mutex_lock(&c->lock);
    while (extipy__context_inside(c) > c->stuck)
        pthread_cond_wait(&c->changed, &c->lock);
}

/* What the context's own thread waits for; the lock is held, and let go of. */
static int end_keeper(struct extipy_ctx *c)
{
    int parked, exited, ends = 1;

    c->phase = EXTIPY_ENDED;
    pthread_cond_broadcast(&c->changed);
    while (!c->parked && !c->finalised && !extipy__has_exited(c))
        pthread_cond_wait(&c->changed, &c->lock);
    parked = c->parked;
    exited = !parked && extipy__has_exited(c);
    if (exited)
        ends = extipy__exiting_await_gil(c);
    if (!ends)
        extipy__jobs_settle(c); /* it may have been about to tell of them */
    pthread_mutex_unlock(&c->lock);
    if (!parked && ends)
        pthread_join(c->keeper, NULL);
    else if (!parked)
        pthread_detach(c->keeper);
    if (exited && !c->on_caller)
        extipy__output_end(c);
    return parked;
}

/* Returns 0 when the interpreter is finalised, and 1 if it has only stopped. */
static int end_interpreter(struct extipy_ctx *c, struct extipy_closed *out, struct exti_error *err)
{
    int parked;

    pthread_mutex_lock(&c->lock);
    if (c->phase != EXTIPY_OPEN) {
        pthread_mutex_unlock(&c->lock);
        return pyrt_fail(err, EXTIPY_E_CLOSED, "the context is closed");
    }
    shut(c);
    if (c->on_caller && c->buffers && !extipy__has_exited(c)) {
        c->phase = EXTIPY_OPEN;
        pthread_mutex_unlock(&c->lock);
        return pyrt_fail(err, EXTI_E_BUSY,
                         "buffers of the context are in use, and this thread is to finalise it");
    }
    out->attached = c->attached;
    out->buffers = c->buffers;
    parked = end_keeper(c);
    if (c->on_caller)
        end(c);
    return parked;
}

/* On the program's thread that initialised. */
static int end_on_caller(struct extipy_ctx *c, struct extipy_closed *out, struct exti_error *err)
{
    int rc = extipy__threads_begin_end(c, err);

    if (rc < 0)
        return rc;
    rc = end_interpreter(c, out, err);
    extipy__threads_end_end(c);
    if (rc == 0)
        extipy__threads_disown(c);
    return rc;
}

static int unload(struct extipy_ctx *c, exti_report_fn report, void *user, size_t *left,
                  struct exti_error *err)
{
    extipy__contexts_remove(c);
    extipy__threads_detach_all(c);
    return release_context(c, report, user, left, err);
}

/* A thread that was never in the context. */
static void *unload_later(void *arg)
{
    struct extipy_ctx *c = arg;
    size_t left;

    pthread_join(c->keeper, NULL);
    unload(c, NULL, NULL, &left, NULL);
    atomic_fetch_sub(&lingering, 1);
    return NULL;
}

static int linger(struct extipy_ctx *c, struct exti_error *err)
{
    pthread_t thread;
    int rc;

    atomic_fetch_add(&lingering, 1);
    rc = pyrt_thread_start(&thread, unload_later, c, err);
    /* Nobody will wait for what nobody unloads. */
    pthread_detach(rc == 0 ? thread : c->keeper);
    return rc;
}

int extipy_close(struct extipy_ctx *c, exti_report_fn report, void *user, struct extipy_closed *out,
                 struct exti_error *err)
{
    struct extipy_closed closed = {0};
    struct extipy_attachment *paused;
    int rc;

    if (!c)
        return 0;
    if (out && out->size < sizeof out->size)
        return pyrt_fail(err, EXTI_E_ARG, "out has no size");
    rc = extipy_detach(c, err);
    if (rc == 0)
        rc = extipy__threads_pause(&paused, err);
    if (rc != 0)
        return rc;
    rc = c->on_caller ? end_on_caller(c, &closed, err) : end_interpreter(c, &closed, err);
    if (rc == 0)
        rc = unload(c, report, user, &closed.mapped, err);
    else if (rc > 0)
        rc = linger(c, err);
    extipy__threads_resume(paused);
    if (rc == 0 && out)
        rc = extipy__options_write(out, &closed, sizeof closed);
    return rc;
}
