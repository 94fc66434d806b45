/* Prints the name patterns of the libraries that contexts share, one per line. */
#include <stdio.h>

#include "loader/resolve/policy.h"

int main(void)
{
    const char *glob, *reason;
    bool fixed;

    for (size_t i = 0; (glob = exti__policy_base(EXTI_FORMAT_ELF, i, &reason, &fixed)) != NULL; i++)
        puts(glob);
    return ferror(stdout) || fflush(stdout) != 0;
}
