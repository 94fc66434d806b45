/* Keeps the process's signal handlers out of the contexts' reach. */
#ifndef RUNTIME_SIGNALS_H
#define RUNTIME_SIGNALS_H

#include <extisolate.h>

/* The redirects for exti_ctx_opts: in the copies, the calls that change what a signal does fail
 * with EPERM (signal.signal raises PermissionError, faulthandler.enable RuntimeError).  Asking for
 * what is in force already succeeds, so does asking what it is; and so, without effect, does
 * setting a handler of SIGINT, SIGTERM or SIGHUP from native code other than libpython's.  A forked
 * child is a process of its own and free to change its handlers. */
const struct exti_redirect *pyrt_signal_redirects(size_t *count);

#endif
