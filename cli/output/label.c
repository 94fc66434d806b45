#include "cli/output/label.h"

#include <stdio.h>

#include "cli/output/text.h"

void cli_label(const char *name)
{
    printf("  %s%-9s%s ", cli_style(stdout, CLI_DIM), name, cli_style(stdout, CLI_PLAIN));
}

void cli_line(const char *name, const char *text, const char *none)
{
    cli_label(name);
    if (text != NULL)
        cli_put(stdout, text);
    else
        printf("%s%s%s", cli_style(stdout, CLI_DIM), none, cli_style(stdout, CLI_PLAIN));
    putchar('\n');
}
