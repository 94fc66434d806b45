/* A toy extension that calls the loader.  Its calls must not be tail calls: then the loader's
 * functions would return straight to the test and could not recognise the context. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "toy.h"

#define CALL(type, call)                                                                           \
    do {                                                                                           \
        type volatile result_ = (call);                                                            \
        return result_;                                                                            \
    } while (0)

int dl_next(void)
{
    return toy_next();
}

void *dl_open(const char *path, int flags)
{
    CALL(void *, dlopen(path, flags));
}

void *dl_sym(void *handle, const char *name)
{
    CALL(void *, dlsym(handle, name));
}

void *dl_sym_default(const char *name)
{
    CALL(void *, dlsym(RTLD_DEFAULT, name));
}

int dl_close(void *handle)
{
    CALL(int, dlclose(handle));
}

static void *kept;
static int *kept_result;

/* Closes `handle` when this file is closed. */
void dl_close_at_end(void *handle, int *result)
{
    kept = handle;
    kept_result = result;
}

__attribute__((destructor)) static void at_end(void)
{
    if (kept_result)
        *kept_result = dlclose(kept);
}

const char *dl_error(void)
{
    CALL(const char *, dlerror());
}

int dl_addr(const void *address, Dl_info *info)
{
    CALL(int, dladdr(address, info));
}

#ifdef __GLIBC__
int dl_addr1(const void *address, Dl_info *info, void **extra, int flags)
{
    CALL(int, dladdr1(address, info, extra, flags));
}

int dl_info(void *handle, int request, void *out)
{
    CALL(int, dlinfo(handle, request, out));
}
#endif

/* Calls through pointers in initialised data, like those in a function table of a module. */
void *(*const dl_table_open)(const char *, int) = dlopen;
void *(*const dl_table_sym)(void *, const char *) = dlsym;
int (*const dl_table_close)(void *) = dlclose;

void *dl_open_by_table(const char *path, int flags)
{
    CALL(void *, dl_table_open(path, flags));
}

void *dl_sym_by_table(void *handle, const char *name)
{
    CALL(void *, dl_table_sym(handle, name));
}
