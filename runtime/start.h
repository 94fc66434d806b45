/* Starts the interpreter of a context. */
#ifndef RUNTIME_START_H
#define RUNTIME_START_H

#include "runtime/heap.h"
#include "runtime/pyapi.h"

struct pyrt_startup {
    const struct pyrt_install *python;
    char **argv; /* the command line, as for a stock interpreter */
    int argc;
    int keep; /* the context's code stays mapped when it is closed */
};

/* Initialises CPython on the calling thread, which then has the GIL.  `config` gets what CPython
 * made of the command line; PyConfig_Clear frees it.  `heap` gets the memory of the interpreter,
 * unless its code stays mapped; it is set on failure, too, once CPython has allocated. */
int pyrt_initialise(union pyrt_config *config, struct pyrt_heap **heap, const struct pyrt_api *py,
                    const struct pyrt_startup *how, struct exti_error *err);

#endif
