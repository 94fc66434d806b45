/* Calls of functions that may not return: their thread ends, they throw an exception or call
 * longjmp.  Where the system tells of it. */
#ifndef LOADER_PROCESS_RUN_WATCHED_H
#define LOADER_PROCESS_RUN_WATCHED_H

#ifndef _WIN32

/* Calls run(arg).  If control leaves that in another way than by returning, calls left(user), and
 * does not return itself.  An exception that nobody catches ends the process before. */
void exti__run_watched(void (*run)(const void *arg), const void *arg,
                       void (*left)(const void *user), const void *user);

#else

static inline void exti__run_watched(void (*run)(const void *arg), const void *arg,
                                     void (*left)(const void *user), const void *user)
{
    (void)left, (void)user;
    run(arg);
}

#endif
#endif
