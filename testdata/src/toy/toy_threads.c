/* A toy extension that starts threads and makes thread-specific keys, with POSIX and with C11
 * calls. */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <threads.h>

#include "toy.h"

static sem_t go;
static pthread_t thread;
static thrd_t thread_c11;
static pthread_key_t key, early;
static tss_t key_c11;
static int destroyed, made;

static void destroy(void *value)
{
    *(int *)value = ++destroyed;
}

/* mimalloc makes a key in its constructor too. */
__attribute__((constructor)) static void construct(void)
{
    static int value;

    toy_get();
    sem_init(&go, 0, 0);
    if (pthread_key_create(&early, destroy))
        abort();
    pthread_setspecific(early, &value);
}

__attribute__((destructor)) static void destruct(void)
{
    /* libhdf5 sets its key in a finaliser too, and would crash on an error. */
    if (made && pthread_setspecific(key, &made))
        abort();
    pthread_key_delete(early);
    if (made)
        pthread_key_delete(key);
}

static void *wait_to_go(void *arg)
{
    sem_wait(&go);
    if (arg)
        pthread_exit(arg);
    return arg;
}

static int wait_to_go_c11(void *arg)
{
    (void)arg;
    sem_wait(&go);
    return 7;
}

int threads_start(void)
{
    return pthread_create(&thread, NULL, wait_to_go, &go);
}

int threads_start_c11(void)
{
    return thrd_create(&thread_c11, wait_to_go_c11, NULL);
}

/* Lets the thread end, but does not wait for that. */
int threads_release(void)
{
    return sem_post(&go);
}

int threads_join(void)
{
    void *result;

    return pthread_join(thread, &result) || result != &go;
}

/* thrd_t is pthread_t, and pthread_join is the only call that the thread sanitizer knows. */
int threads_join_c11(void)
{
    void *result;

    return pthread_join(thread_c11, &result) ? -1 : (int)(long)result;
}

int threads_make_key(void)
{
    made = 1;
    return pthread_key_create(&key, destroy);
}

int threads_set_value(int *value)
{
    return pthread_setspecific(key, value);
}

int threads_delete_key(void)
{
    made = 0;
    return pthread_key_delete(key);
}

int threads_make_key_c11(void)
{
    return tss_create(&key_c11, destroy);
}

int threads_set_value_c11(int *value)
{
    return tss_set(key_c11, value);
}

int threads_delete_key_c11(void)
{
    tss_delete(key_c11);
    return 0;
}
