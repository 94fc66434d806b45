#define _GNU_SOURCE /* dladdr, RTLD_DEFAULT, RTLD_NODELETE */
#include "loader/process/dl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/glob.h"
#include "base/path.h"
#include "loader/process/guarded_dl.h"

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

/* ld.so says no more than "failed to map segment from shared object". */
static bool lies_on_noexec(const char *path)
{
#ifdef ST_NOEXEC
    struct statvfs fs;

    return statvfs(path, &fs) == 0 && (fs.f_flag & ST_NOEXEC);
#else
    (void)path;
    return false;
#endif
}

static int fail_dl(struct exti_error *err, const char *path)
{
    const char *text = dlerror();
    const char *full = text ? strstr(text, EXTI_DL_STATIC_TLS_FULL) : NULL;
    int rc;

    if (full)
        return fail_static_tls(err, path, text, full);
    if (lies_on_noexec(path)) {
        rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                        "its file system is mounted noexec, so nothing can be loaded from it; put "
                        "the context elsewhere by --dir, or by TMPDIR");
        exti__error_file(err, path);
        return rc;
    }
    rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET, "%s",
                    text ? text : "the loader gives no reason");
    exti__error_file(err, path);
    return rc;
}

/* glibc's message leaves out what failed if it has no memory for that text either. */
static int fail_dl_memory(struct exti_error *err, const char *path)
{
    const char *text = dlerror();
    int rc = exti__fail(err, EXTI_E_NOMEM, EXTI_NO_OFFSET, "out of memory: %s",
                        text ? text : "the loader gives no reason");

    exti__error_file(err, path);
    return rc;
}

int exti__dl_open(const char *path, void **handle, struct exti_error *err)
{
    void *h;

    errno = 0;
    h = exti__dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!h)
        return errno == ENOMEM ? fail_dl_memory(err, path) : fail_dl(err, path);
    *handle = h;
    return 0;
}

int exti__dl_close(void *handle, struct exti_error *err)
{
    return exti__dlclose(handle) ? fail_dl(err, "") : 0;
}

void *exti__dl_find(const char *name)
{
    return exti__dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

bool exti__dl_is_open(const char *path)
{
    void *h = exti__dl_find(path);

    if (h)
        exti__dlclose(h);
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
            return exti__dlopen(full, mode);
    }
    return exti__dlopen(file, mode);
}

/* libffi 3.8 opens its own file for closures, and does not close it when it is unloaded
 * (src/tramp.c). */
static bool loses_by_unloading(const char *file)
{
    const char *name = exti__base_name(file);

    return exti__glob_matches("libffi.so*", name, false) ||
           exti__glob_matches("libffi-*.so*", name, false);
}

void *exti__dl_open_shared(const char *path, const char *origin, const char *file)
{
    const int stays = loses_by_unloading(file) ? RTLD_NODELETE : 0;
    void *handle = exti__dl_open_for(path, origin, file, RTLD_NOW | RTLD_LOCAL | stays);

    if (!handle)
        dlerror();
    return handle;
}

/* A part of the program stays anyway; that has no name to be opened by. */
void exti__stay_loaded(void)
{
    Dl_info own;

    if (dladdr((void *)(uintptr_t)exti__stay_loaded, &own) &&
        !exti__dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE))
        dlerror();
}

void *exti__dl_symbol(void *handle, const char *name)
{
    return exti__dlsym(handle, name);
}

void *exti__dl_global(const char *name)
{
    return exti__dlsym(RTLD_DEFAULT, name);
}
