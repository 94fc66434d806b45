#include "toy.h"

#include <string.h>

int toy_count;
int toy_constructed;

struct toy_type toy_type_type = {"type", &toy_type_type, toy_get, 0};
struct toy_type toy_object_type = {"object", &toy_type_type, toy_next, 0};
int (*const toy_table[])(void) = {toy_next, toy_get, 0};

static _Thread_local int tls_value = 7;
static struct {
    char key[16];
    void *value;
} registry[32];

__attribute__((constructor)) static void construct(void)
{
    toy_constructed++;
    toy_object_type.instances = 1;
}

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
    return &tls_value;
}

static int fast(void)
{
    return 42;
}

static int (*choose_fast(void))(void)
{
    return fast;
}

int toy_fast(void) __attribute__((ifunc("choose_fast")));

void toy_register(const char *key, void *value)
{
    for (size_t i = 0; i < sizeof registry / sizeof *registry; i++) {
        if (!registry[i].key[0] || !strcmp(registry[i].key, key)) {
            strncpy(registry[i].key, key, sizeof registry[i].key - 1);
            registry[i].value = value;
            return;
        }
    }
}

void *toy_find(const char *key)
{
    for (size_t i = 0; i < sizeof registry / sizeof *registry && registry[i].key[0]; i++) {
        if (!strcmp(registry[i].key, key))
            return registry[i].value;
    }
    return 0;
}
