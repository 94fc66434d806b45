/* What differs between POSIX systems. */
#ifndef RUNTIME_SYSTEM_H
#define RUNTIME_SYSTEM_H

/* Names the calling thread for debuggers and profilers; at most 15 bytes. */
void pyrt_name_thread(const char *name);

/* Whether a thread of this process, by the system's id, has not ended; 0 where that is unknown. */
int pyrt_thread_lives(long id);

/* The number of processors that this process may use. */
int pyrt_processors(void);

/* Like pipe(2), with FD_CLOEXEC on both ends. */
int pyrt_pipe(int fd[2]);

#endif
