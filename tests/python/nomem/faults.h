/* Lets each allocation in turn fail, of the library's own and of Python's.  A thread or a descriptor
 * that the system refuses counts as an allocation. */
#ifndef TESTS_PYTHON_NOMEM_FAULTS_H
#define TESTS_PYTHON_NOMEM_FAULTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* When failing begins. */
enum begin { AT_ONCE, BY_THE_TEST, AT_MODULE, AT_OUTPUT, AT_END };

struct way {
    bool python; /* Python's allocations, else the library's */
    bool on;     /* all that follow, too */
    enum begin begin;
    bool silent; /* the library does without, or Python says it */
    long most;   /* the number of the last one, at most; 0: until no allocation fails */
    long stride; /* 2: every second one; 0: each */
};

extern struct way way;
extern long first;          /* the number of the allocation that is to fail */
extern atomic_bool failing; /* it has begun */
extern atomic_long failed;  /* how many did */
extern atomic_long live;    /* the library's blocks */

void begin_failing(enum begin begin); /* if the way says then */

/* Starts a thread of the test's, which does not fail. */
void start_thread(pthread_t *out, void *(*run)(void *), void *arg);

#endif
