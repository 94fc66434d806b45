/* A toy extension that uses the loader by itself. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "toy.h"

int dl_next(void)
{
    return toy_next();
}

void *dl_open(const char *path, int flags)
{
    return dlopen(path, flags);
}

void *dl_sym(void *handle, const char *name)
{
    return dlsym(handle, name);
}

void *dl_sym_default(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

int dl_close(void *handle)
{
    return dlclose(handle);
}

const char *dl_error(void)
{
    return dlerror();
}

/* By pointers in initialised data, as a function table of a module would hold them. */
void *(*const dl_table_open)(const char *, int) = dlopen;
void *(*const dl_table_sym)(void *, const char *) = dlsym;

void *dl_open_by_table(const char *path, int flags)
{
    return dl_table_open(path, flags);
}

void *dl_sym_by_table(void *handle, const char *name)
{
    return dl_table_sym(handle, name);
}
