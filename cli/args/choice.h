/* What the commands that open contexts have in common: --closure, --share, --isolate and --quirks
 * say which libraries a context gets copies of, --full-copies what these leave out, --trust-dir
 * whose directories are believed. */
#ifndef CLI_ARGS_CHOICE_H
#define CLI_ARGS_CHOICE_H

#include <stddef.h>
#include <stdint.h>

#include <extisolate.h>

#include "cli/args/option.h"

/* Their rows in a table of struct cli_option, for a struct cli_choice. */
#define CLI_CHOICE_OPTIONS(choice)                                                                 \
    {.name = "closure", .take = cli_take_closure, .to = (choice)},                                 \
        {.name = "share", .take = cli_take_share, .to = (choice)},                                 \
        {.name = "isolate", .take = cli_take_isolate, .to = (choice)},                             \
        {.name = "quirks", .values = &(choice)->quirks},                                           \
        {.name = "full-copies", .bits = &(choice)->flags, .bit = EXTI_CTX_FULL_COPIES},            \
    {                                                                                              \
        .name = "trust-dir", .bits = &(choice)->flags, .bit = EXTI_CTX_TRUST_DIR                   \
    }
#define CLI_CHOICE_HELP                                                                            \
    "  --closure WHICH   which libraries that modules need are copied into a new context: all\n"   \
    "                    but a base set that the man page lists (all, the default), those that\n"  \
    "                    lead to libpython (api), or none (none)\n"                                \
    "  --share GLOB      share libraries whose SONAME, file name or, if GLOB has a slash, path\n"  \
    "                    matches\n"                                                                \
    "  --isolate GLOB    copy such libraries; if several of both match, the last one counts\n"     \
    "  --quirks FILE     add the rules of FILE; see 'extisolate help quirks'\n"                    \
    "  --full-copies     copies have all bytes of their originals; without it, those for "         \
    "contexts\n"                                                                                   \
    "                    leave out code and constants, and share them with the originals\n"        \
    "  --trust-dir       use CTXDIR though others can change it, or a folder above it, and so\n"   \
    "                    put their code into this process\n"

/* Zero-initialised: no option given. */
struct cli_choice {
    enum exti_closure closure;
    struct exti_rule *rules; /* the array is owned, the globs are the command line's */
    size_t count;
    struct cli_values quirks; /* files */
    uint32_t flags;           /* EXTI_CTX_TRUST_DIR, EXTI_CTX_FULL_COPIES */
};

int cli_take_closure(void *choice, const char *command, const char *word);
int cli_take_share(void *choice, const char *command, const char *glob);
int cli_take_isolate(void *choice, const char *command, const char *glob);

/* Points `opts` to what `c` holds, which must stay as long as it is used. */
void cli_choice_apply(const struct cli_choice *c, struct exti_ctx_opts *opts);
void cli_choice_free(struct cli_choice *c);

#endif
