#include "bindings/python/ext/release.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* innermost */
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static struct pkg_export *unreleased;
static pthread_t releaser;
static int started, stopping, rung;
static void (*also)(void);
static atomic_int due; /* there is something to release, or to settle */

static _Thread_local int calls; /* that this thread is in */

static void await_work(void)
{
    pthread_mutex_lock(&lock);
    while (!unreleased && !rung && !stopping)
        pthread_cond_wait(&work, &lock);
    pthread_mutex_unlock(&lock);
}

void pkg_release_now(struct pkg_export *e)
{
    PyBuffer_Release(&e->view);
    free(e);
}

/* With the GIL. */
static void release_all(void)
{
    struct pkg_export *e, *next;

    pthread_mutex_lock(&lock);
    e = unreleased;
    unreleased = NULL;
    rung = 0;
    atomic_store(&due, 0);
    pthread_mutex_unlock(&lock);
    for (; e; e = next) {
        next = e->next;
        pkg_release_now(e);
    }
    if (also)
        also();
}

static void *release_for_others(void *unused)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyThreadState *state;
    int ends = 0;

    while (!ends) {
        state = PyEval_SaveThread();
        await_work();
        PyEval_RestoreThread(state);
        release_all();
        pthread_mutex_lock(&lock);
        ends = stopping;
        pthread_mutex_unlock(&lock);
    }
    PyGILState_Release(gil);
    return unused;
}

int *pkg_release_begin(void)
{
    int *mine = &calls;

    ++*mine;
    return mine;
}

void pkg_release_end(int *mine)
{
    --*mine;
    if (atomic_load_explicit(&due, memory_order_relaxed) && started)
        release_all();
}

/* With the GIL, which guards it. */
int pkg_release_start(void)
{
    if (!started && pthread_create(&releaser, NULL, release_for_others, NULL) == 0)
        started = 1;
    if (!started)
        PyErr_SetString(PyExc_RuntimeError, "cannot start the thread that releases shared memory");
    return started;
}

struct pkg_export *pkg_release_new(PyObject *exporter)
{
    struct pkg_export *e;

    if (!pkg_release_start())
        return NULL;
    e = malloc(sizeof *e);
    if (!e) {
        PyErr_NoMemory();
        return NULL;
    }
    if (PyObject_GetBuffer(exporter, &e->view, PyBUF_FULL_RO) < 0) {
        free(e);
        return NULL;
    }
    return e;
}

void pkg_release_later(void *arg)
{
    struct pkg_export *e = arg;

    pthread_mutex_lock(&lock);
    e->next = unreleased;
    unreleased = e;
    atomic_store(&due, 1);
    if (!calls)
        pthread_cond_signal(&work);
    pthread_mutex_unlock(&lock);
}

void pkg_release_also(void (*function)(void))
{
    also = function;
}

void pkg_release_ring(void)
{
    pthread_mutex_lock(&lock);
    rung = 1;
    atomic_store(&due, 1);
    pthread_cond_signal(&work); /* a call may last for long, and others release meanwhile */
    pthread_mutex_unlock(&lock);
}

void pkg_release_stop(void)
{
    PyThreadState *state;
    if (!started)
        return;
    pthread_mutex_lock(&lock);
    stopping = 1;
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&lock);
    state = PyEval_SaveThread();
    pthread_join(releaser, NULL);
    PyEval_RestoreThread(state);
    started = 0;
}

void pkg_release_forked(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    unreleased = NULL;
    started = rung = 0;
}
