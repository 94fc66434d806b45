/* A toy extension whose dependency uses the API: it names libtoydep.so by $ORIGIN. */
#include "toy.h"

int toydep_next(void);
int *toydep_count(void);
int *toydep_static(void);

int depext_next(void)
{
    return toy_next();
}

int *depext_count(void)
{
    return &toy_count;
}

int depext_dep_next(void)
{
    return toydep_next();
}

int *depext_dep_count(void)
{
    return toydep_count();
}

int *depext_dep_static(void)
{
    return toydep_static();
}
