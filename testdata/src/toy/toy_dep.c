/* A library that a toy extension needs and that uses the API itself. */
#include "toy.h"

static int calls;

int toydep_next(void)
{
    calls++;
    return toy_next();
}

int *toydep_count(void)
{
    return &toy_count;
}

int *toydep_static(void)
{
    return &calls;
}
