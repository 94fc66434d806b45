#include "pystub.h"

#include "libc.h"

struct py_type PyType_Type = {"type", &PyType_Type, Py_Twice};
int _Py_Table[20000] = {[0] = 100, [2] = 102, [10000] = 110};
int Py_Modules;

static char *last_name;

int PyModule_Create(const char *name)
{
    size_t n = strlen(name) + 1;

    free(last_name);
    last_name = malloc(n);
    if (!last_name)
        abort();
    memcpy(last_name, name, n);
    return ++Py_Modules;
}

int Py_Twice(int n)
{
    return 2 * n;
}

const void *Py_Address(int which)
{
    static const void *const own[] = {
        &PyType_Type,           _Py_Table, &Py_Modules, (const void *)PyModule_Create,
        (const void *)Py_Twice, 0};

    return own[which];
}

int PyOptional_There(void)
{
    return 7;
}

/* Gives the number of modules that this library has seen, for the test. */
int py_modules(void);

int py_modules(void)
{
    return Py_Modules;
}
