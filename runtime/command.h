/* The command line of a context's program, as the stock interpreter would have got it. */
#ifndef RUNTIME_COMMAND_H
#define RUNTIME_COMMAND_H

#include "runtime/python.h"

/* The strings are those of the installation and the program. */
struct pyrt_command {
    const char **words; /* sys.orig_argv */
    size_t word_count;
    const char **argv; /* sys.argv */
    size_t argc;
};

int pyrt_command_new(struct pyrt_command *out, const struct pyrt_install *python,
                     const struct pyrt_program *program, struct exti_error *err);
void pyrt_command_free(struct pyrt_command *c);

#endif
