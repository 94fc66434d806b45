/* A process id for each context, for libraries that tell processes apart by it.  POSIX systems. */
#ifndef LOADER_INTERPOSE_CONTEXT_PID_H
#define LOADER_INTERPOSE_CONTEXT_PID_H

/* The function for `symbol`, or NULL.  No library has the symbol: a quirk redirects getpid to
 * it. */
void *exti__context_pid_call(const char *symbol);

#endif
