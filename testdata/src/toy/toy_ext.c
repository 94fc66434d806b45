/* A toy extension.  Like extensions of CPython it names no API library and leaves its API symbols
 * undefined.  NAME is "a" or "b", so that two files differ. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "toy.h"

#define STR(x) #x
#define XSTR(x) STR(x)

extern int toy_absent(void) __attribute__((weak));
extern int toy_get(void) __attribute__((weak));

/* Exported, so that the first definition in the lookup scope could replace them. */
int ext_own = 5;
int ext_own_bump(void);
int (*ext_function)(void) = toy_next; /* addresses in initialised data */
int *ext_data = &toy_count;
struct toy_type ext_type = {"ext " XSTR(NAME), &toy_type_type, toy_next, 0};

static int (*function_at_init)(void);
static int count_at_init = -1;
static int calls;
static _Thread_local int tls_value = 3;

__attribute__((constructor)) static void construct(void)
{
    function_at_init = toy_next;
    count_at_init = toy_next_by_call();
    toy_register(XSTR(NAME), &ext_type);
}

int ext_next(void)
{
    calls++;
    return toy_next();
}

int ext_next_by_pointer(void)
{
    return ext_function();
}

int ext_fast(void)
{
    return toy_fast();
}

int *ext_count(void)
{
    return &toy_count;
}

void *ext_meta(void)
{
    return ext_type.meta;
}

int *ext_static(void)
{
    return &calls;
}

int *ext_tls(void)
{
    return &tls_value;
}

int ext_own_bump(void)
{
    return ++ext_own;
}

int ext_own_by_call(void)
{
    return ext_own_bump();
}

int *ext_own_seen(void)
{
    return &ext_own;
}

int ext_weak_absent(void)
{
    return toy_absent != 0;
}

int ext_weak_present(void)
{
    return toy_get != 0;
}

int ext_count_at_init(void)
{
    return count_at_init;
}

/* Gives the function that the constructor saw, and the current one. */
void *ext_function_at_init(void)
{
    return (void *)function_at_init;
}

void *ext_function_now(void)
{
    return (void *)toy_next;
}

/* Gives the file of the API function. */
const char *ext_where(void)
{
    Dl_info info;

    return dladdr((void *)toy_next, &info) ? info.dli_fname : "";
}

void *ext_find(const char *key)
{
    return toy_find(key);
}
