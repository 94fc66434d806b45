#include "cli/os/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <extisolate.h>

/* _Exit, as other threads may be at work, and what is registered with atexit may need memory. */
void cli_out_of_memory(void)
{
    fflush(stdout);
    fputs("extisolate: out of memory\n", stderr);
    fflush(stderr);
    _Exit(1);
}

void *cli_alloc(size_t n)
{
    void *p = malloc(n != 0 ? n : 1);

    if (p == NULL)
        cli_out_of_memory();
    return p;
}

void *cli_zeroed(size_t count, size_t n)
{
    void *p = calloc(count != 0 ? count : 1, n != 0 ? n : 1);

    if (p == NULL)
        cli_out_of_memory();
    return p;
}

void *cli_resize(void *p, size_t n)
{
    void *grown = realloc(p, n != 0 ? n : 1);

    if (grown == NULL)
        cli_out_of_memory();
    return grown;
}

char *cli_copy_text(const char *text)
{
    const size_t n = strlen(text) + 1;

    return memcpy(cli_alloc(n), text, n);
}

void *cli_unless_full(void *p)
{
    if (p == NULL && errno == ENOMEM)
        cli_out_of_memory();
    return p;
}

bool cli_worked(int rc)
{
    if (rc == EXTI_E_NOMEM)
        cli_out_of_memory();
    return rc == 0;
}
