#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "loader/dl.h"

#include <dlfcn.h>

#include "loader/base/error.h"

static int fail_dl(struct exti_error *err, const char *path)
{
    const char *text = dlerror();
    int rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET, "%s",
                        text ? text : "the loader gives no reason");

    exti__error_file(err, path);
    return rc;
}

int exti__dl_open(const char *path, void **handle, struct exti_error *err)
{
    void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!h)
        return fail_dl(err, path);
    *handle = h;
    return 0;
}

int exti__dl_close(void *handle, struct exti_error *err)
{
    return dlclose(handle) ? fail_dl(err, "") : 0;
}

bool exti__dl_is_open(const char *path)
{
    void *h = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);

    if (h)
        dlclose(h);
    return h != NULL;
}

void *exti__dl_symbol(void *handle, const char *name)
{
    return dlsym(handle, name);
}

void *exti__dl_global(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}
