#include "cli/args/purpose.h"

#include <string.h>

#include <extisolate.h>

#include "cli/output/message.h"

int cli_take_purpose(void *flags, const char *command, const char *value)
{
    uint32_t *bits = flags;

    if (strcmp(value, "contexts") == 0)
        *bits |= EXTI_CTX_FOR_LOADING;
    else if (strcmp(value, "programs") == 0)
        *bits &= ~EXTI_CTX_FOR_LOADING;
    else
        return cli_usage(command, "--for takes contexts or programs, not '%s'", value);
    return CLI_OK;
}
