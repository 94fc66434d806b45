/* Prints the runtime's PyConfig table, which test_layout.sh compares with CPython's headers:
 * `member offset` lines and the size.
 *
 *   layout MINOR FREE_THREADED DEBUG */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/pyconfig.h"

static void print_member(void *user, const char *name, enum pyrt_kind kind, size_t offset)
{
    (void)user;
    (void)kind;
    printf("%s %zu\n", name, offset);
}

int main(int argc, char **argv)
{
    struct pyrt_build build;

    if (argc != 4)
        return 2;
    build = (struct pyrt_build){atoi(argv[1]), atoi(argv[2]), atoi(argv[3])};
    pyrt_fields(build, print_member, NULL);
    printf("sizeof %zu\n", pyrt_config_size(build));
    return 0;
}
