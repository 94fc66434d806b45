#define _GNU_SOURCE
#include "loader/track/moment.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t exti__now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec + 1;
}

void exti__rest(void)
{
    const struct timespec moment = {0, 20000};

    syscall(SYS_nanosleep, &moment, NULL);
}
