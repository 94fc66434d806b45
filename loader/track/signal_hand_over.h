/* Signals on their way from the process to a context: those that a thread has taken, and has
 * neither sent to the one that handles them nor begun to handle itself.  ELF systems.  Any thread,
 * signal handlers included. */
#ifndef LOADER_TRACK_SIGNAL_HAND_OVER_H
#define LOADER_TRACK_SIGNAL_HAND_OVER_H

/* Installs the fork handler; to be called before any copy is loaded. */
void exti__hand_overs_survive_forks(void);

/* By the dispatcher, when it has taken a signal, and when it is done. */
void exti__hand_over_begin(void);
void exti__hand_over_end(void);

/* Around a handler, which may be left by siglongjmp: what the calling thread has under way.  The
 * result of the one is for the other. */
unsigned exti__hand_over_pause(void);
void exti__hand_over_resume(unsigned n);

/* Lets what others have sent the process reach its handlers, as far as that can be seen, and calls
 * those that the calling thread is to call: a process of one thread has handled a signal before its
 * next system call returns, but here any thread may take it first.  Waits 20 ms at most.  No
 * cancellation point. */
void exti__signals_settle(void);

#endif
