/* Ends an interpreter. */
#ifndef RUNTIME_EMBED_FINALISE_H
#define RUNTIME_EMBED_FINALISE_H

#include "runtime/pyapi.h"

/* Finalises on the thread that initialised.  CPython takes a thread for ended when that is about to
 * let go of its state; the system ends it a little later, and nothing can be unloaded before.  So
 * this waits for those that are joined, a second at most. */
void extipy__finalise(const struct pyrt_api *py);

/* Does of it what can be done before: joins the threads, and runs the functions of atexit. */
void extipy__stop(const struct pyrt_api *py);

#endif
