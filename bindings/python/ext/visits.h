/* Calls of interpreters, and their interruption by SIGINT. */
#ifndef BINDINGS_PYTHON_EXT_VISITS_H
#define BINDINGS_PYTHON_EXT_VISITS_H

#include "bindings/python/ext/core.h"

/* As struct pkg_core has them. */
int pkg_visits_begin(struct pkg_visit *visit, uint64_t id, struct exti_error *err);
void pkg_visits_end(struct pkg_visit *visit);

/* Counts the SIGINTs so far.  One that comes after a call has begun interrupts it. */
unsigned long pkg_visits_signals(void);
/* Counts a SIGINT, as its handler may: who begins to call after it is not meant by it. */
void pkg_visits_signalled(void);
/* Interrupts the calls that had begun before the last SIGINT. */
void pkg_visits_interrupt(void);

#endif
