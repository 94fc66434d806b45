/* A signal for which the interpreter has a function wakes its main thread wherever that waits, and
 * has the function called there.  This takes the last of the real-time signals for it. */
#define _GNU_SOURCE /* syscall */
#include "runtime/ending.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

#include "runtime/python.h"

#ifdef __linux__

/* The program that the thread runs: signal handlers of Python are called on the main thread. */
static _Thread_local struct pyrt_ending *of_thread;

static struct pyobj *raise_system_exit(struct pyobj *self, struct pyobj *args)
{
    const struct pyrt_api *py = of_thread->py;
    struct pyobj *status = py->PyLong_FromLong(128 + of_thread->sig);

    (void)self, (void)args;
    if (status)
        py->PyErr_SetObject(*py->system_exit, status);
    py->Py_DecRef(status);
    return NULL;
}

static const struct pyrt_method method = {"end_program", raise_system_exit, PYRT_METHOD_ARGS, NULL};

int pyrt_ending_begin(struct pyrt_ending *e, const struct pyrt_api *py)
{
    struct pyobj *module = py->PyImport_ImportModule("_signal"), *function = NULL, *result = NULL;

    e->py = py;
    of_thread = e;
    if (!module) {
        py->PyErr_Clear();
        atomic_store(&e->deaf, true);
        return 0;
    }
    function = py->PyCFunction_NewEx(&method, NULL, NULL);
    if (function)
        result = py->PyObject_CallMethod(module, "signal", "iO", SIGRTMAX, function);
    py->Py_DecRef(result);
    py->Py_DecRef(function);
    py->Py_DecRef(module);
    if (!result)
        return -1;
    atomic_store(&e->thread, (pid_t)syscall(SYS_gettid));
    if (e->sig)
        raise(SIGRTMAX);
    return 0;
}

static void nothing(int sig)
{
    (void)sig;
}

/* What asks a program to end may arrive when its interpreter takes no signals any more, and is not
 * to end the process. */
static void expect_late(void)
{
    const struct sigaction act = {.sa_handler = nothing, .sa_flags = SA_RESTART};

    sigaction(SIGRTMAX, &act, NULL);
}

static void wake(pid_t thread)
{
    syscall(SYS_tgkill, getpid(), thread, SIGRTMAX);
}

void pyrt_ending_prepare(struct pyrt_ending *e)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, expect_late);
    sem_init(&e->over, 0, 0);
}

static bool end_by(struct pyrt_ending *e, enum pyrt_way way)
{
    int runs = PYRT_RUNS;

    return atomic_compare_exchange_strong(&e->way, &runs, (int)way);
}

void pyrt_ending_return(struct pyrt_ending *e)
{
    if (end_by(e, PYRT_RETURNED))
        sem_post(&e->over);
}

/* The status first: what follows may wait for ever as well, which comes to the same. */
void pyrt_ending_exit(struct pyrt_ending *e, int status)
{
    pyrt_ending_end(e);
    if (end_by(e, PYRT_EXITED)) {
        e->exit_status = status;
        sem_post(&e->over);
    }
    if (e->py && e->py->Py_IsInitialized())
        e->py->PyGILState_Ensure();
}

bool pyrt_ending_wait(struct pyrt_ending *e)
{
    while (sem_wait(&e->over) && errno == EINTR)
        ;
    return e->way == PYRT_EXITED;
}

#else

/* Elsewhere the loader lets no context exit alone. */
void pyrt_ending_prepare(struct pyrt_ending *e)
{
    (void)e;
}

void pyrt_ending_return(struct pyrt_ending *e)
{
    (void)e;
}

void pyrt_ending_exit(struct pyrt_ending *e, int status)
{
    (void)e, (void)status;
}

bool pyrt_ending_wait(struct pyrt_ending *e)
{
    (void)e;
    return false;
}

/* Elsewhere signals are the process's, and no context is asked. */
int pyrt_ending_begin(struct pyrt_ending *e, const struct pyrt_api *py)
{
    e->py = py;
    return 0;
}

static void wake(pid_t thread)
{
    (void)thread;
}

#endif

void pyrt_ending_end(struct pyrt_ending *e)
{
    atomic_store(&e->ended, true);
}

void pyrt_ending_ask(struct pyrt_ending *e, int sig)
{
    int none = 0;

    if (e->ended)
        return;
    if (e->deaf || !atomic_compare_exchange_strong(&e->sig, &none, sig))
        pyrt_end_by(sig);
    else if (e->thread)
        wake(e->thread);
}

void pyrt_end_by(int sig)
{
    const struct sigaction none = {.sa_handler = SIG_DFL};
    sigset_t one;

    sigaction(sig, &none, NULL);
    sigemptyset(&one);
    sigaddset(&one, sig);
    raise(sig);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
}
