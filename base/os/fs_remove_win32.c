#include "base/os/fs_remove.h"

#include <errno.h>

#include "base/mem.h"
#include "base/os/fs_random.h"
#include "base/os/fs_temp_name.h"
#include "base/os/fs_win32.h"

DWORD exti__win32_delete(const struct exti_wide *w)
{
    struct {
        DWORD flags;
    } how = {0x1 | 0x2 | 0x10}; /* FILE_DISPOSITION_DELETE, _POSIX_SEMANTICS, _IGNORE_READONLY */
    const FILE_INFO_BY_HANDLE_CLASS disposition_ex = 21; /* FileDispositionInfoEx */
    HANDLE h = CreateFileW(w->text, DELETE, EXTI_SHARE_ALL, NULL, OPEN_EXISTING,
                           FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    DWORD attributes;
    bool done;

    if (h == INVALID_HANDLE_VALUE)
        return GetLastError();
    done = SetFileInformationByHandle(h, disposition_ex, &how, sizeof how);
    CloseHandle(h);
    if (done)
        return 0;
    attributes = GetFileAttributesW(w->text);
    if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_READONLY)
        SetFileAttributesW(w->text, attributes & ~(DWORD)FILE_ATTRIBUTE_READONLY);
    return DeleteFileW(w->text) ? 0 : GetLastError();
}

int exti__win32_step_aside(const char *path, const struct exti_wide *w, struct exti_wide *aside,
                           struct exti_error *err)
{
    uint8_t random[EXTI_TEMP_RANDOM];
    int rc = exti__fs_random(random, sizeof random, "a temporary name", err);
    char *temp = rc ? NULL : exti__fs_temp_path(path, random);

    if (!rc)
        rc = temp ? exti__wide_path(temp, aside, err) : exti__fail_nomem(err);
    exti__free(temp);
    if (!rc && !MoveFileExW(w->text, aside->text, 0))
        rc = exti__fail_last(err, path, "cannot move the old file aside");
    return rc;
}

/* For a file that a process has loaded, the system may also say "access denied". */
static bool is_in_use(const struct exti_wide *w, DWORD code)
{
    HANDLE h;

    if (code == ERROR_SHARING_VIOLATION || code == ERROR_USER_MAPPED_FILE)
        return true;
    if (code != ERROR_ACCESS_DENIED || exti__win32_is_folder(w))
        return false;
    h = CreateFileW(w->text, DELETE, EXTI_SHARE_ALL, NULL, OPEN_EXISTING, 0, NULL);
    if (h == INVALID_HANDLE_VALUE)
        return GetLastError() == ERROR_SHARING_VIOLATION;
    CloseHandle(h);
    return true;
}

int exti__fs_remove(const char *path, struct exti_error *err)
{
    struct exti_wide w;
    int rc = exti__wide_path(path, &w, err);
    DWORD code;

    if (rc)
        return rc;
    code = exti__win32_delete(&w);
    if (!code || code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND)
        return 0;
    if (!is_in_use(&w, code))
        return exti__fail_system(err, code, path, "cannot remove file");
    rc = exti__fail(err, EXTI_E_IO, EXTI_NO_OFFSET,
                    "cannot remove file: a process has it loaded or open; remove it after the "
                    "process has ended");
    if (err)
        err->os_error = EBUSY;
    exti__error_file(err, path);
    return rc;
}

void exti__fs_discard(const char *path)
{
    struct exti_wide w, aside;

    if (!exti__wide_path(path, &w, NULL) && exti__win32_delete(&w))
        exti__win32_step_aside(path, &w, &aside, NULL);
}

int exti__fs_rmdir(const char *path, bool *removed, struct exti_error *err)
{
    struct exti_wide w;
    int rc = exti__wide_path(path, &w, err);

    if (rc)
        return rc;
    *removed = RemoveDirectoryW(w.text);
    if (*removed || GetLastError() == ERROR_DIR_NOT_EMPTY ||
        GetLastError() == ERROR_SHARING_VIOLATION || exti__errno_of(GetLastError()) == ENOENT)
        return 0;
    return exti__fail_last(err, path, "cannot remove folder");
}
