#include "loader/interpose/context_pid.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "loader/track/address_map.h"

/* Linux gives processes ids below 2^22 (PID_MAX_LIMIT), macOS below 100000.  So no process has such
 * an id, nor has a context of another process; and a forked child's is another. */
#define PID_BITS 22
#define CONTEXTS ((1u << (31 - PID_BITS)) - 1)

static pid_t context_pid(void)
{
    struct exti_module m;
    pid_t pid = getpid();

    if (!exti__address_map_find((uintptr_t)__builtin_return_address(0), &m))
        return pid;
    return pid | (pid_t)((m.ctx->number % CONTEXTS + 1) << PID_BITS);
}

void *exti__context_pid_call(const char *symbol)
{
    return strcmp(symbol, "exti_context_pid") == 0 ? (void *)(uintptr_t)context_pid : NULL;
}
