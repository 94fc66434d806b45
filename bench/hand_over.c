/* Two threads that hand something over, and back: the bare cost of having another thread do
 * something. */
#include "bench/bench.h"

#include <pthread.h>

static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t asked = PTHREAD_COND_INITIALIZER, answered = PTHREAD_COND_INITIALIZER;
static enum { IDLE, ASKED, ANSWERED, OVER } turn;

static void *answer(void *unused)
{
    pthread_mutex_lock(&lock);
    while (turn != OVER) {
        if (turn == ASKED) {
            turn = ANSWERED;
            pthread_cond_signal(&answered);
        }
        pthread_cond_wait(&asked, &lock);
    }
    pthread_mutex_unlock(&lock);
    return unused;
}

void hand_over_begin(void)
{
    turn = IDLE;
    if (pthread_create(&thread, NULL, answer, NULL) != 0)
        die("a thread cannot be started");
}

void hand_over(void)
{
    pthread_mutex_lock(&lock);
    turn = ASKED;
    pthread_cond_signal(&asked);
    while (turn != ANSWERED)
        pthread_cond_wait(&answered, &lock);
    pthread_mutex_unlock(&lock);
}

void hand_over_end(void)
{
    pthread_mutex_lock(&lock);
    turn = OVER;
    pthread_cond_signal(&asked);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}
