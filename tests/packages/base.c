/* Prints the name patterns of the libraries that contexts share, one per line. */
#include <stdio.h>

#include "loader/resolve/policy.h"

int main(void)
{
    const char *glob, *reason;
    enum exti_base_kind kind;

    for (size_t i = 0; (glob = exti__policy_base(EXTI_FORMAT_ELF, i, &reason, &kind)) != NULL; i++)
        if (kind != EXTI_BASE_LOCKS) /* contexts isolate those */
            puts(glob);
    return ferror(stdout) || fflush(stdout) != 0;
}
