/* What every context of CPython needs beside its interpreter: the loader's context, and a
 * thread. */
#ifndef RUNTIME_HOST_H
#define RUNTIME_HOST_H

#include <pthread.h>

#include "runtime/pyapi.h"

/* Opens the loader's context for `python`, with the redirects that keep it from the process's
 * signals, and looks up the interpreter's functions.  Sets `opts->api_library` and the redirects.
 * *out is set on failure, too, once there is something to close. */
int pyrt_open(struct exti_ctx **out, struct pyrt_api *py, const struct pyrt_install *python,
              struct exti_ctx_opts *opts, struct exti_error *err);

/* How many bytes a main thread's stack may have, within reason. */
size_t pyrt_stack_size(void);

/* Starts a thread with a stack of that size, so that deep recursion in extensions works as in a
 * stock process. */
int pyrt_thread_start(pthread_t *out, void *(*run)(void *arg), void *arg, struct exti_error *err);

#endif
