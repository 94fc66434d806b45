/* The API inside a program, implemented differently to reveal interposed references. */
#include "toy.h"

struct toy_type toy_type_type = {"host type", &toy_type_type, toy_get, 0};
struct toy_type toy_object_type = {"host object", &toy_type_type, toy_next, 0};
int (*const toy_table[])(void) = {toy_next, toy_get, 0};
int toy_count = 1000;
int toy_constructed = 1000;

int toy_next(void)
{
    return ++toy_count;
}

int toy_get(void)
{
    return toy_count;
}

int toy_next_by_call(void)
{
    return toy_next();
}

int *toy_count_seen(void)
{
    return &toy_count;
}

int *toy_tls_seen(void)
{
    static _Thread_local int value = 1000;

    return &value;
}

int toy_fast(void)
{
    return 1000;
}

void toy_register(const char *key, void *value)
{
    (void)key, (void)value;
}

void *toy_find(const char *key)
{
    (void)key;
    return 0;
}
