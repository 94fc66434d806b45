/* The constructors of copies run here, not in the system's loader: after the references of all
 * modules of an opening are proven and patched, on the thread that opened them, with no lock of the
 * library or of the system's loader held.  On Windows the system's loader has run them before;
 * then only the waiting is left.
 *
 * A thread that needs a module whose constructors another thread runs waits for them, whatever
 * contexts both are in.  If that thread waits for this one in turn, maybe through others, then this
 * one goes on, as a thread does with ld.so that opens what it is initialising: the module counts as
 * initialised. */
#ifndef LOADER_LOAD_INITIALISE_H
#define LOADER_LOAD_INITIALISE_H

#include "loader/load/opening.h"

/* Installs the fork handlers once; 0 or an errno value. */
int exti__initialise_survive_forks(void);

/* Notes that the opening's thread will run the constructors of a new module. */
void exti__initialise_later(const struct exti_opening *o, struct exti_module *m);

/* Runs the constructors of the opening's modules that have not run, in the order of the system's
 * loader, and waits for those that another thread runs.  EXTI_E_LOAD if one has not returned,
 * EXTI_E_BUSY if this process was forked while another thread ran it; then none that comes later
 * runs.
 *
 * A constructor may end the thread, throw an exception that somebody catches, or call longjmp: then
 * this does not return, the thread's calls of the library up to this opening have ended, and the
 * modules that were not initialised fail for whoever asks for them. */
int exti__initialise(struct exti_opening *o, struct exti_error *err);

/* Returns once the constructors of a module, which the caller has a reference to, have run; at once
 * if the calling thread runs them, or if the thread that does waits for this one.  Fails as
 * exti__initialise does. */
int exti__await_initialised(const struct exti_module *m, struct exti_error *err);

#endif
