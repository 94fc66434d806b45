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

/* Like mimalloc. */
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
    /* Like libhdf5, which would crash. */
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

int guests_start(void)
{
    return pthread_create(&thread, NULL, wait_to_go, &go);
}

int guests_start_c11(void)
{
    return thrd_create(&thread_c11, wait_to_go_c11, NULL);
}

/* Does not wait for the thread. */
int guests_release(void)
{
    return sem_post(&go);
}

int guests_join(void)
{
    void *result;

    return pthread_join(thread, &result) || result != &go;
}

/* thrd_t is pthread_t, and the thread sanitizer knows only this call. */
int guests_join_c11(void)
{
    void *result;

    return pthread_join(thread_c11, &result) ? -1 : (int)(long)result;
}

int guests_key(void)
{
    made = 1;
    return pthread_key_create(&key, destroy);
}

int guests_value(int *value)
{
    return pthread_setspecific(key, value);
}

int guests_key_gone(void)
{
    made = 0;
    return pthread_key_delete(key);
}

int guests_key_c11(void)
{
    return tss_create(&key_c11, destroy);
}

int guests_value_c11(int *value)
{
    return tss_set(key_c11, value);
}

int guests_key_gone_c11(void)
{
    tss_delete(key_c11);
    return 0;
}
