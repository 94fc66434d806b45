#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "loader/process/dl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/path.h"

/* glibc says "FILE: cannot allocate memory in static TLS block". */
static int fail_static_tls(struct exti_error *err, const char *path, const char *text,
                           const char *words)
{
    const size_t n = (size_t)(words - text);
    int rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET, "%s", EXTI_DL_STATIC_TLS_FULL);
    char file[EXTI_PATH_MAX];

    if (n > 2 && n <= sizeof file) {
        snprintf(file, sizeof file, "%.*s", (int)(n - 2), text);
        path = file;
    }
    exti__error_file(err, path);
    return rc;
}

static int fail_dl(struct exti_error *err, const char *path)
{
    const char *text = dlerror();
    const char *full = text ? strstr(text, EXTI_DL_STATIC_TLS_FULL) : NULL;
    int rc;

    if (full)
        return fail_static_tls(err, path, text, full);
    rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET, "%s",
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

void *exti__dl_find(const char *name)
{
    return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

bool exti__dl_is_open(const char *path)
{
    void *h = exti__dl_find(path);

    if (h)
        dlclose(h);
    return h != NULL;
}

void *exti__dl_open_for(const char *path, const char *origin, const char *file, int mode)
{
    const char *end;
    char full[4096];

    for (; !strchr(file, '/') && path && *path; path = *end ? end + 1 : end) {
        int token = strncmp(path, "$ORIGIN", 7) == 0 ? 7 : strncmp(path, "${ORIGIN}", 9) ? 0 : 9;
        int n;

        end = path + strcspn(path, ":");
        n = snprintf(full, sizeof full, "%s%.*s/%s",
                     token         ? origin
                     : end == path ? "."
                                   : "",
                     (int)(end - path) - token, path + token, file);
        if (n > 0 && (size_t)n < sizeof full && access(full, F_OK) == 0)
            return dlopen(full, mode);
    }
    return dlopen(file, mode);
}

void *exti__dl_open_shared(const char *path, const char *origin, const char *file)
{
    void *handle = exti__dl_open_for(path, origin, file, RTLD_NOW | RTLD_LOCAL);

    if (!handle)
        dlerror();
    return handle;
}

void *exti__dl_symbol(void *handle, const char *name)
{
    return dlsym(handle, name);
}

void *exti__dl_global(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}
