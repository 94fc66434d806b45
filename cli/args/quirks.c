#include "cli/args/quirks.h"

#include "cli/args/option.h"
#include "cli/output/message.h"

int cli_open_quirks(const struct cli_values *files, struct exti_quirks **out,
                    struct exti_error *err)
{
    if (exti_quirks_open(files->items, files->count, out, err) == 0)
        return CLI_OK;
    cli_fail(err->file, "%s", err->message);
    if (err->code == EXTI_E_FORMAT)
        cli_hint("'man 5 extisolate-quirks' describes the format");
    return CLI_FAILED;
}
