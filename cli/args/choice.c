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

int cli_take_share(void *choice, const char *command, const char *glob)
{
    return add_rule(choice, command, glob, true);
}

int cli_take_isolate(void *choice, const char *command, const char *glob)
{
    return add_rule(choice, command, glob, false);
}

int cli_take_closure(void *choice, const char *command, const char *word)
{
    struct cli_choice *c = choice;
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
