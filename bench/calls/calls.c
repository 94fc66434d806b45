/* What a copy and its original call many times: bench/calls.c loads both and compares. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int null;
static volatile sig_atomic_t came; /* signals from outside */
static volatile uintptr_t used;    /* so that no call is left out */
static volatile time_t moment = 1700000000;

static void on_signal(int sig)
{
    used += (uintptr_t)sig;
}

static void on_sent(int sig)
{
    (void)sig;
    came++;
}

static void get_variable(void)
{
    used += (uintptr_t)getenv("HOME");
}

static void get_no_variable(void)
{
    used += (uintptr_t)getenv("EXTI_NO_SUCH_VARIABLE");
}

static void write_byte(void)
{
    used += (uintptr_t)write(null, "x", 1);
}

static void tell_time(void)
{
    const time_t t = moment;

    used += (uintptr_t)localtime(&t)->tm_hour;
}

static void raise_signal(void)
{
    raise(SIGUSR1);
}

static pthread_key_t key;

static void get_value(void)
{
    used += (uintptr_t)pthread_getspecific(key);
}

static void set_value(void)
{
    pthread_setspecific(key, &key);
}

/* Seconds of so many calls; `which`: in the order of the functions above. */
double time_calls(int which, int count)
{
    void (*const calls[])(void) = {get_variable, get_no_variable, write_byte, tell_time,
                                   raise_signal, get_value,       set_value};
    const struct sigaction act = {.sa_handler = on_signal};
    struct timespec from, to;

    if (!null) {
        null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        sigaction(SIGUSR1, &act, NULL);
        pthread_key_create(&key, NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < count; i++)
        calls[which]();
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

/* Seconds for so many signals that somebody else sends: until each has been handled. */
double time_signals(void (*send)(int sig), int count)
{
    const struct sigaction act = {.sa_handler = on_sent};
    struct timespec from, to;

    sigaction(SIGUSR2, &act, NULL);
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < count; i++) {
        const sig_atomic_t before = came;

        send(SIGUSR2);
        while (came == before)
            ;
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}
