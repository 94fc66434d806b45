#include "loader/process/dl.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <windows.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/win32.h"
#include "base/path.h"

/* CPython loads extension modules so: looks beside the library and the program and in folders that
 * the program has named, never along PATH or in the working directory. */
#define SEARCH (LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR)

#if defined(_M_X64) || defined(__x86_64__)
#define OWN_MACHINE "x86-64"
#elif defined(_M_ARM64) || defined(__aarch64__)
#define OWN_MACHINE "arm64"
#else
#define OWN_MACHINE "i386"
#endif

/* Shows no message box about a damaged file or a missing disk. */
static HMODULE load_quietly(const wchar_t *path, DWORD flags)
{
    DWORD old = 0, code;
    HMODULE h;

    SetThreadErrorMode(SEM_FAILCRITICALERRORS | SEM_NOOPENFILEERRORBOX, &old);
    h = LoadLibraryExW(path, NULL, flags);
    code = GetLastError();
    SetThreadErrorMode(old, NULL);
    SetLastError(code);
    return h;
}

static HMODULE loaded_module(const char *name, DWORD flags)
{
    struct exti_wide w;
    HMODULE h;

    if (exti__wide_path(name, &w, NULL) || !GetModuleHandleExW(flags, w.text, &h))
        return NULL;
    return h;
}

static char *path_beside(const char *file, const char *name)
{
    char *folder = exti__strdup(file), *slash = folder ? exti__path_last_slash(folder) : NULL,
         *path = NULL;

    if (slash) {
        *slash = 0;
        path = exti__path_join(folder, name);
    }
    exti__free(folder);
    return path;
}

/* Whether the loader would find the library `name` for the one at `path`. */
static bool can_be_found(const char *path, const char *name)
{
    struct exti_file_id id;
    struct exti_wide w;
    char *local = path_beside(path, name);
    bool found = local && !exti__fs_id(local, &id, NULL);
    HMODULE h;

    exti__free(local);
    if (found || strncasecmp(name, "api-", 4) == 0 || strncasecmp(name, "ext-", 4) == 0 ||
        loaded_module(name, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT))
        return true;
    if (exti__wide_path(name, &w, NULL))
        return false;
    h = load_quietly(w.text, LOAD_LIBRARY_AS_DATAFILE | LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    if (h)
        FreeLibrary(h);
    return h != NULL;
}

/* Windows does not say which library it has not found. */
static int fail_missing(struct exti_error *err, const char *path)
{
    struct exti_image *im;
    const char *name, *missing = NULL;
    int rc;

    if (exti_inspect(path, &im, NULL))
        im = NULL;
    for (size_t i = 0; im && !missing && (name = exti_image_needed(im, i)); i++)
        if (!(exti_image_needed_flags(im, i) & EXTI_NEED_WEAK) && !can_be_found(path, name))
            missing = name;
    if (missing)
        rc = exti__fail(
            err, EXTI_E_LOAD, EXTI_NO_OFFSET,
            "%.200s, or a library that it needs, was not found; put it beside the original, or add "
            "its folder by AddDllDirectory",
            missing);
    else
        rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                        "a library that it needs, directly or indirectly, was not found");
    exti_image_free(im);
    return rc;
}

static int fail_bad_image(struct exti_error *err, const char *path)
{
    struct exti_image_info info = {.size = sizeof info};
    struct exti_image *im;
    int rc;

    if (exti_inspect(path, &im, NULL))
        return exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                          "is not a Windows library, or is damaged");
    exti_image_info(im, &info);
    if (strcmp(info.format, "PE") != 0)
        rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET, "is %s, which Windows does not load",
                        info.format);
    else if (strcmp(info.machine, OWN_MACHINE) != 0)
        rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                        "is for %s, but this process is " OWN_MACHINE, info.machine);
    else
        rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                        "it, or a library that it needs, is damaged or for another machine");
    exti_image_free(im);
    return rc;
}

static int fail_load(struct exti_error *err, DWORD code, const char *path)
{
    char text[256];
    int rc;

    switch (code) {
    case ERROR_MOD_NOT_FOUND:
        rc = fail_missing(err, path);
        break;
    case ERROR_PROC_NOT_FOUND:
        rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET,
                        "a library that it needs lacks a symbol that it imports; it may be "
                        "another version");
        break;
    case ERROR_BAD_EXE_FORMAT:
        rc = fail_bad_image(err, path);
        break;
    case ERROR_DLL_INIT_FAILED:
        rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET, "its initialisation failed");
        break;
    default:
        exti__system_text(code, text, sizeof text);
        rc = exti__fail(err, EXTI_E_LOAD, EXTI_NO_OFFSET, "%s (error %lu)",
                        text[0] ? text : "the loader gives no reason", code);
    }
    exti__error_file(err, path);
    return rc;
}

int exti__dl_open(const char *path, void **handle, struct exti_error *err)
{
    struct exti_wide w;
    int rc = exti__wide_path(path, &w, err);
    HMODULE h;

    if (rc)
        return rc;
    h = load_quietly(w.text, SEARCH);
    if (!h)
        return fail_load(err, GetLastError(), path);
    *handle = h;
    return 0;
}

int exti__dl_close(void *handle, struct exti_error *err)
{
    return FreeLibrary(handle) ? 0 : fail_load(err, GetLastError(), "");
}

bool exti__dl_is_open(const char *path)
{
    return loaded_module(path, GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT) != NULL;
}

void *exti__dl_find(const char *name)
{
    return loaded_module(name, 0);
}

/* PE has no search paths.  Windows would look beside the copy, not beside the original. */
void *exti__dl_open_shared(const char *path, const char *origin, const char *file)
{
    char *local = exti__path_is_absolute(file) ? exti__strdup(file) : exti__path_join(origin, file);
    struct exti_file_id id;
    struct exti_wide w;
    bool found = local && !exti__fs_id(local, &id, NULL);
    void *handle = NULL;

    (void)path;
    if (found)
        exti__dl_open(local, &handle, NULL);
    exti__free(local);
    if (!found)
        handle = exti__dl_find(file);
    if (!found && !handle && !exti__wide_path(file, &w, NULL))
        handle = load_quietly(w.text, LOAD_LIBRARY_SEARCH_DEFAULT_DIRS);
    return handle;
}

void *exti__dl_symbol(void *handle, const char *name)
{
    return (void *)(uintptr_t)GetProcAddress(handle, name);
}

/* An import names its library: there is no global scope. */
void *exti__dl_global(const char *name)
{
    (void)name;
    return NULL;
}
