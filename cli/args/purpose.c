#include "cli/args/purpose.h"

#include <string.h>

#include <extisolate.h>

#include "cli/output/message.h"

int cli_purpose_option(uint32_t *flags, const char *command, const char *value)
{
    if (strcmp(value, "contexts") == 0)
        *flags |= EXTI_CTX_FOR_LOADING;
    else if (strcmp(value, "programs") == 0)
        *flags &= ~EXTI_CTX_FOR_LOADING;
    else
        return cli_usage(command, "--for takes contexts or programs, not '%s'", value);
    return CLI_OK;
}
