/* The directory, root and umask of one context.  The kernel keeps the three for a group of threads:
 * who is started shares them with who started it, a thread can leave its group, and none can join
 * another (CLONE_FS).  So the context's own threads are one group, apart from the process's; and a
 * thread of the program, if the context says so, is taken to the context's directory whenever it
 * enters, and back.  Linux; elsewhere all have the process's.  Any thread. */
#ifndef LOADER_TRACK_DIRECTORY_H
#define LOADER_TRACK_DIRECTORY_H

#include <stdbool.h>

#include "base/error.h"

#if !defined(__APPLE__) && !defined(_WIN32)

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct exti_directory;

/* Installs the fork handlers; 0 or an errno value. */
int exti__directories_survive_forks(void);

/* Begins as the calling thread's, if that is known; else no thread is taken there and none becomes
 * the context's own.  `switches`: threads of the program that enter the context are
 * taken there. */
int exti__directory_new(struct exti_directory **out, bool switches, struct exti_error *err);

/* The context is closed: nobody is taken there any more, and no thread is its own.  Copies that
 * stay mapped may still call what follows. */
void exti__directory_end(struct exti_directory *d);  /* NULL ok */
void exti__directory_free(struct exti_directory *d); /* NULL ok */

/* Makes the calling thread one of the context's own.  `started`: one of these has started it.  0 or
 * an errno value: EBUSY, the thread, or the context's group, is another's.  Then it is where it
 * was, but may have what it has for itself. */
int exti__directory_own_thread(struct exti_directory *d, bool started);

/* Takes the calling thread, which has entered the context or none (NULL), to where it belongs. */
void exti__directory_enter(struct exti_directory *d);

/* What a thread is given by the one that starts it. */
struct exti_directory_start {
    uint64_t own;  /* whose group it is in */
    bool inherits; /* what follows, as another thread does the work */
    char name[16];
    sigset_t signals;
};

/* pthread_create of a thread of the context's (NULL: that has no directory of its own), which is to
 * call exti__directory_begin first.  *begin is filled before it runs. */
int exti__directory_create(struct exti_directory *d, struct exti_directory_start *begin,
                           pthread_t *out, const pthread_attr_t *attr, void *(*run)(void *arg),
                           void *arg);
void exti__directory_begin(const struct exti_directory_start *begin);

/* chdir(2), fchdir(2) and umask(2) of the calling thread, wherever it is. */
int exti__directory_chdir(const char *path);
int exti__directory_fchdir(int fd);
mode_t exti__directory_umask(mode_t mask);

#endif
#endif
