#include "loader/interpose/replacements.h"

#include <stddef.h>

#include "loader/interpose/dl_calls.h"
#include "loader/interpose/thread_calls.h"

void *exti__replacement(const char *symbol)
{
    void *to = exti__dl_call(symbol);

    return to ? to : exti__thread_call(symbol);
}
