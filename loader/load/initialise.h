/* The constructors of copies run here, not in the system's loader: after the references of all
 * modules of an opening are proven and patched, on the thread that opened them, with no lock of the
 * library or of the system's loader held.  On Windows the system's loader has run them before;
 * then only the waiting is left. */
#ifndef LOADER_LOAD_INITIALISE_H
#define LOADER_LOAD_INITIALISE_H

#include "loader/load/opening.h"

/* Notes that the opening's thread will run the constructors of a new module.  ctx->lock is held. */
void exti__initialise_later(struct exti_opening *o, struct exti_module *m);

/* Runs the constructors of the opening's modules that have not run, in the order of the system's
 * loader.  Waits
 * for those that another thread runs, unless that thread waits for this one. */
void exti__initialise(struct exti_ctx *ctx, struct exti_opening *o);

/* Returns once the constructors of a module, which the caller has a reference to, have run; at once
 * if the calling thread runs them, or if the thread that does waits for this one. */
void exti__await_initialised(const struct exti_module *m);

#endif
