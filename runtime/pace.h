/* The pace at which programs begin in contexts.  Each makes megabytes of objects, and threads that
 * take turns on a processor push each other's out of its caches: 40 programs at once take a third
 * more processor time than two at a time.  So each waits until a processor is free, but not for
 * long.  On macOS all begin at once. */
#ifndef RUNTIME_PACE_H
#define RUNTIME_PACE_H

#include <stdint.h>
#ifndef __APPLE__
#include <semaphore.h>
#endif

/* One program waits at it until it is opened.  Opening it is async-signal-safe, and so is to say
 * that the program has come, or never will. */
struct pyrt_gate {
#ifndef __APPLE__
    sem_t come, open;
#else
    char unused;
#endif
};

void pyrt_gate_init(struct pyrt_gate *g);
void pyrt_gate_pass(struct pyrt_gate *g);
void pyrt_gate_come(struct pyrt_gate *g);
void pyrt_gate_open(struct pyrt_gate *g);
void pyrt_gate_await(struct pyrt_gate *g); /* until the program has come */

/* Around the opening of a context.  As many as there are processors pass at a time: what the first
 * ones have found out about files serves those that come after (loader/store/store_pattern.h). */
void pyrt_pace_enter(void);
void pyrt_pace_leave(void);

/* Says that a program has ended.  Async-signal-safe. */
void pyrt_pace_tell(void);
#define PYRT_NO_THREAD UINT64_MAX

/* Waits until fewer than `most` of `count` threads use a processor or would.  `number` gives each
 * thread's number, as pyrt_thread_number does, 0 if it is about to run, or PYRT_NO_THREAD. */
void pyrt_pace_await(uint64_t (*number)(void *user, int i), void *user, int count, int most);

#endif
