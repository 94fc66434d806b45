/* What differs between POSIX systems. */
#ifndef RUNTIME_SYSTEM_H
#define RUNTIME_SYSTEM_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Names the calling thread for debuggers and profilers; at most 15 bytes. */
void pyrt_name_thread(const char *name);

/* The calling thread's number in the kernel. */
uint64_t pyrt_thread_number(void);

/* Whether a thread of this process, by the system's id, has not ended; 0 where that is unknown. */
int pyrt_thread_lives(long id);

/* Whether a thread of this process, by its number, uses a processor or would; 0 if it has ended, or
 * where that is unknown.  Waiting for a page or a file's bytes counts as use. */
int pyrt_thread_runs(uint64_t number);

/* The number of processors that this process may use. */
int pyrt_processors(void);

/* How many bytes a block of malloc's has. */
size_t pyrt_block_size(void *block);

/* Gives the system the memory that malloc keeps for later, where that can be asked for. */
void pyrt_trim(void);

/* Like pipe(2), with FD_CLOEXEC on both ends. */
int pyrt_pipe(int fd[2]);

/* Opens a descriptor that becomes readable once the process has ended; -1: there is none such. */
int pyrt_process_open(pid_t pid);

/* Opens a pipe, or what the system has of less weight, for messages of eight bytes of which at most
 * one is on its way.  Both ends, which may be the same, never wait, and have FD_CLOEXEC. */
int pyrt_event_open(int fd[2]);

/* Writes the calling thread's native call stack to the descriptor, a line for each call, where the
 * system can tell it.  Async-signal-safe once it has been prepared. */
void pyrt_backtrace_prepare(void);
void pyrt_backtrace_write(int fd);

/* Nanoseconds of a clock that nobody sets. */
uint64_t pyrt_clock(void);

#define PYRT_NEVER UINT64_MAX
/* What it shows so many nanoseconds from now. */
uint64_t pyrt_clock_after(uint64_t span);

/* A condition that pyrt_cond_wait waits for. */
int pyrt_cond_init(pthread_cond_t *cond);
/* As pthread_cond_wait, until that time of the clock at most. */
void pyrt_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until);

#endif
