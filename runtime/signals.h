/* Keeps the process's signal handlers out of the contexts' reach. */
#ifndef RUNTIME_SIGNALS_H
#define RUNTIME_SIGNALS_H

#include <extisolate.h>

/* The redirects for exti_ctx_opts.  In copies, calls that change what a signal does fail with
 * EPERM: signal.signal raises PermissionError, faulthandler.enable RuntimeError.  Calls that query
 * a handler or set the one in force succeed.  Native code other than libpython that sets a handler
 * of SIGINT, SIGTERM or SIGHUP gets success, without effect.  A forked child is free to change its
 * handlers.  The array is static; any thread may call this. */
const struct exti_redirect *pyrt_signal_redirects(size_t *count);

#endif
