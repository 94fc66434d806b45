#include "bindings/python/ext/stack.h"

#include <pthread.h>
#include <stdint.h>

/* The last quarter of the thread's stack; at first all there is, as nothing is known of it yet. */
static _Thread_local struct {
    uintptr_t lowest, size;
} last = {0, UINTPTR_MAX};

/* Once for a thread, and not amidst what each call passes. */
__attribute__((noinline)) static void measure(void)
{
    pthread_attr_t attributes;
    size_t size;
    void *lowest;

    last.size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &lowest, &size) == 0) {
        last.lowest = (uintptr_t)lowest;
        last.size = size / 4;
    }
    pthread_attr_destroy(&attributes);
}

static int is_in_last(uintptr_t here)
{
    return here - last.lowest < last.size;
}

int pkg_stack_is_low(void)
{
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);

    if (!is_in_last(here))
        return 0;
    if (last.size == UINTPTR_MAX)
        measure();
    return is_in_last(here);
}
