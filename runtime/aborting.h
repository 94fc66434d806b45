/* Says which context's code has called abort, as the process dies by it. */
#ifndef RUNTIME_ABORTING_H
#define RUNTIME_ABORTING_H

/* To be called before it may happen. */
void pyrt_aborting_prepare(void);

/* Writes a line, and the calling thread's native call stack, to standard error.
 * Async-signal-safe. */
void pyrt_aborting_tell(const char *context);

#endif
