/* --for: who loads the copies. */
#ifndef CLI_ARGS_PURPOSE_H
#define CLI_ARGS_PURPOSE_H

#define CLI_PURPOSE_HELP(default)                                                                  \
    "  --for WHO         who loads the copies: contexts of extisolate, which run the copies'\n"    \
    "                    constructors themselves (contexts), or any program (programs);\n"         \
    "                    default " default "; give each its own directory\n"

/* For struct cli_option: sets or clears EXTI_CTX_FOR_LOADING in a uint32_t. */
int cli_take_purpose(void *flags, const char *command, const char *value);

#endif
