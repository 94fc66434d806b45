/* An extension with all of the C library: constructors, thread-locals, callbacks at a thread's
 * end. */
#include <stdlib.h>

__declspec(dllimport) int PyModule_Create2(void *definition, int version);
__declspec(dllimport) extern int PyLong_Type;
#define API __declspec(dllexport)

static __thread int own = 7;
static int built;
static int *block;

__attribute__((constructor)) static void build(void)
{
    built++;
    block = calloc(1, sizeof *block);
}

__attribute__((destructor)) static void drop(void)
{
    free(block);
}

API int PyInit_crt(void)
{
    return PyModule_Create2(&block, 3) + PyLong_Type;
}

API int crt_own(void)
{
    return own++;
}

API int crt_static(void)
{
    return built * 100 + ++*block;
}
