/* Whose the timers of timer_create(2) are, for handlers: the kernel says in a signal which timer
 * has sent it.  ELF systems. */
#ifndef LOADER_TRACK_TIMER_TABLE_H
#define LOADER_TRACK_TIMER_TABLE_H

#include <stdbool.h>
#include <time.h>

struct exti_ctx;
struct exti_signals;

/* All but exti__timer_owner with a lock of the caller's held. */

/* Notes a timer, which has not been started yet.  `s` is whom its signals go to; NULL: it sends
 * none.  False without memory. */
bool exti__timer_add(timer_t timer, const struct exti_ctx *ctx, struct exti_signals *s);

/* It is deleted, or about to be. */
void exti__timer_remove(timer_t timer);

/* A timer of the context, or of any (NULL); false: there is none. */
bool exti__timer_next(const struct exti_ctx *ctx, timer_t *out);

/* In a forked child: it has none of them, nor signals of theirs, and the kernel gives their numbers
 * anew. */
void exti__timer_forget_all(void);

/* Whom the signals of the kernel's timer go to; NULL: it is no context's.  No lock; signal handlers
 * may call it.  *deleted: it was a context's. */
struct exti_signals *exti__timer_owner(int number, bool *deleted);

#endif
