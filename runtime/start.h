/* Starts the interpreter of a context. */
#ifndef RUNTIME_START_H
#define RUNTIME_START_H

#include "runtime/command.h"
#include "runtime/heap.h"
#include "runtime/pyapi.h"

struct pyrt_startup {
    const struct pyrt_install *python;
    const struct pyrt_command *command;
    const struct pyrt_setting *settings; /* of the caller's, which go before ours */
    size_t setting_count;
    int keep;    /* the context's code stays mapped when it is closed */
    int program; /* the context runs a program, which has signal handlers as one of python3 has */
};

/* Initialises CPython on the calling thread, which then has the GIL.  `heap` gets the memory of the
 * interpreter, unless its code stays mapped; it is set on failure, too, once CPython has
 * allocated. */
int pyrt_initialise(struct pyrt_heap **heap, const struct pyrt_api *py,
                    const struct pyrt_startup *how, struct exti_error *err);

#endif
