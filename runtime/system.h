/* What POSIX leaves to each system. */
#ifndef RUNTIME_SYSTEM_H
#define RUNTIME_SYSTEM_H

/* Names the calling thread for debuggers and profilers; at most 15 bytes. */
void pyrt_name_thread(const char *name);

/* How many processors this process may use. */
int pyrt_processors(void);

/* pipe(2) whose ends a program started later does not inherit. */
int pyrt_pipe(int fd[2]);

#endif
