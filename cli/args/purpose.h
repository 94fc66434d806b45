/* --for: who loads the copies. */
#ifndef CLI_ARGS_PURPOSE_H
#define CLI_ARGS_PURPOSE_H

#include <stdint.h>

#define CLI_PURPOSE_HELP(default)                                                                  \
    "  --for WHO         who loads the copies: contexts of extisolate, which run the copies'\n"    \
    "                    constructors themselves (contexts), or any program (programs);\n"         \
    "                    default " default "; give each its own directory\n"

/* Sets or clears EXTI_CTX_FOR_LOADING.  CLI_OK, or a usage error. */
int cli_purpose_option(uint32_t *flags, const char *command, const char *value);

#endif
