/* Ctrl-C: a SIGINT that Python's own handler takes interrupts all calls of contexts as well, for
 * the main thread, which is to raise KeyboardInterrupt, may be in one. */
#ifndef BINDINGS_PYTHON_EXT_INTERRUPT_H
#define BINDINGS_PYTHON_EXT_INTERRUPT_H

#include "bindings/python/ext/core.h"

/* A call of a context that a thread is in; lies on its stack. */
struct pkg_visit {
    struct extipy_ctx *ctx;
    unsigned long thread; /* as Python names it */
    int busy, sent;       /* an exception is being sent to it; was sent */
    unsigned long round;  /* how many SIGINTs came before it, or were sent to it */
    struct pkg_visit *next, **link;
};

/* As of struct pkg_core; without a GIL. */
void pkg_interrupt_begin(struct pkg_visit *visit, struct extipy_ctx *ctx);
void pkg_interrupt_end(struct pkg_visit *visit);
/* Whether the calling thread is in a call of the context. */
int pkg_interrupt_inside(const struct extipy_ctx *ctx);

/* Puts a handler before Python's, on top of which nobody else's is.  `wanted` is asked on a thread
 * without a GIL whether a signal is meant to interrupt.  Any number of times. */
int pkg_interrupt_watch(int (*wanted)(void));
void pkg_interrupt_stop(void);
void pkg_interrupt_forked(void);

#endif
