/* A thread that runs functions for others, which wait for them: for what only a thread with the
 * right place in the kernel can do.  It takes no signals.  ELF systems. */
#ifndef LOADER_TRACK_HELPER_THREAD_H
#define LOADER_TRACK_HELPER_THREAD_H

#include <pthread.h>

struct exti_helper_thread;

/* Starts one, with what a thread inherits from the calling one.  0 or an errno value. */
int exti__helper_thread_start(struct exti_helper_thread **out);

/* Runs the function there and waits for its end.  One caller at a time, who cannot be cancelled;
 * signals are blocked. */
void exti__helper_thread_run(struct exti_helper_thread *t, void (*function)(void *arg), void *arg);

/* Ends the thread.  The caller cannot be cancelled. */
void exti__helper_thread_end(struct exti_helper_thread *t);

/* In a forked child, which has no such thread. */
void exti__helper_thread_forget(struct exti_helper_thread *t);

#endif
