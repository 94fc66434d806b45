#include "cli/args/choice.h"

#include <stdlib.h>
#include <string.h>

#include "cli/args/option.h"
#include "cli/os/memory.h"
#include "cli/output/message.h"

static int add_rule(struct cli_choice *c, const char *command, const char *glob, bool share)
{
    if (*glob == '\0')
        return cli_usage(command, "--%s takes a name like 'libfoo.so*', not ''",
                         share ? "share" : "isolate");
    c->rules = cli_resize(c->rules, (c->count + 1) * sizeof *c->rules);
    c->rules[c->count++] = (struct exti_rule){glob, share};
    return CLI_OK;
}

static int set_closure(struct cli_choice *c, const char *command, const char *word)
{
    static const char *const words[] = {"all", "api", "none", NULL};
    static const enum exti_closure closures[] = {EXTI_CLOSURE_ALL, EXTI_CLOSURE_API,
                                                 EXTI_CLOSURE_NONE};

    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(word, words[i]) == 0) {
            c->closure = closures[i];
            return CLI_OK;
        }
    return cli_usage(command, "--closure takes all, api or none, not '%s'", word);
}

int cli_choice_option(struct cli_choice *c, const char *command, int option, const char *value)
{
    if (option == CLI_CLOSURE)
        return set_closure(c, command, value);
    if (option == CLI_TRUST_DIR) {
        c->flags |= EXTI_CTX_TRUST_DIR;
        return CLI_OK;
    }
    if (option == CLI_QUIRKS)
        return cli_add_value(&c->quirks, command, "--quirks", value);
    return add_rule(c, command, value, option == CLI_SHARE);
}

void cli_choice_apply(const struct cli_choice *c, struct exti_ctx_opts *opts)
{
    opts->closure = c->closure;
    opts->flags |= c->flags;
    opts->rules = c->rules;
    opts->rule_count = c->count;
    opts->quirk_files = c->quirks.items;
    opts->quirk_file_count = c->quirks.count;
}

void cli_choice_free(struct cli_choice *c)
{
    free(c->rules);
    free(c->quirks.items);
    *c = (struct cli_choice){0};
}
