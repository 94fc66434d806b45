/* Ctrl-C: a SIGINT that Python's own handler takes interrupts all calls of contexts as well, for
 * the main thread, which is to raise KeyboardInterrupt, may be in one. */
#ifndef BINDINGS_PYTHON_EXT_INTERRUPT_H
#define BINDINGS_PYTHON_EXT_INTERRUPT_H

#include "bindings/python/ext/core.h"

/* As of struct pkg_core; without a GIL. */
int pkg_interrupt_begin(struct pkg_visit *visit, uint64_t id, struct exti_error *err);

/* Puts a handler before Python's, on top of which nobody else's is.  `wanted` is asked on a thread
 * without a GIL whether a signal is meant to interrupt.  Any number of times. */
int pkg_interrupt_watch(int (*wanted)(void));
void pkg_interrupt_stop(void);
void pkg_interrupt_forked(void);

#endif
