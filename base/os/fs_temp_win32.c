/* Private folders in the system's folder for temporary files.  A loaded library cannot be removed,
 * so a process may have to leave its folder behind: the next process to make one removes it. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

#include <sddl.h> /* after windows.h */

#include "base/mem.h"
#include "base/os/fs_folder.h"
#include "base/os/fs_id.h"
#include "base/os/fs_random.h"
#include "base/os/fs_remove.h"
#include "base/os/win32.h"
#include "base/path.h"

#define PREFIX L"exti-"
#define RANDOM 12 /* bytes; written as hex */

/* Gives the process id in "exti-<process id>-<24 hex digits>", or 0 for another name. */
static DWORD maker_of(const wchar_t *name)
{
    static const wchar_t hex[] = L"0123456789abcdef";
    unsigned long long id = 0;
    size_t n;

    if (wcsncmp(name, PREFIX, wcslen(PREFIX)) != 0)
        return 0;
    name += wcslen(PREFIX);
    n = wcsspn(name, hex);
    if (!n || n > 8 || name[n] != L'-')
        return 0;
    for (size_t i = 0; i < n; i++)
        id = id * 16 + (unsigned long long)(wcschr(hex, name[i]) - hex);
    name += n + 1;
    return wcslen(name) == 2 * RANDOM && wcsspn(name, hex) == 2 * RANDOM ? (DWORD)id : 0;
}

static bool is_running(DWORD id)
{
    HANDLE h = OpenProcess(SYNCHRONIZE, FALSE, id);
    bool running;

    if (!h)
        return GetLastError() != ERROR_INVALID_PARAMETER;
    running = WaitForSingleObject(h, 0) == WAIT_TIMEOUT;
    CloseHandle(h);
    return running;
}

static int remove_named(void *user, const char *name)
{
    char *path = exti__path_join(user, name);

    if (path)
        exti__fs_remove(path, NULL);
    exti__free(path);
    return 0;
}

/* Holds the folder open, so that no one can replace it by a link or make it one.  NULL if it is a
 * link, which could lead anywhere: in some temp folders everyone may make folders. */
static HANDLE hold_folder(const char *path)
{
    struct exti_wide w;
    DWORD attributes;
    HANDLE h;

    if (exti__wide_path(path, &w, NULL))
        return NULL;
    h = CreateFileW(w.text, FILE_LIST_DIRECTORY, FILE_SHARE_READ, NULL, OPEN_EXISTING,
                    FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
    if (h == INVALID_HANDLE_VALUE)
        return NULL;
    attributes = GetFileAttributesW(w.text);
    if (attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY &&
        !(attributes & FILE_ATTRIBUTE_REPARSE_POINT))
        return h;
    CloseHandle(h);
    return NULL;
}

static int sweep_leftover(void *user, const char *name)
{
    wchar_t wide[64];
    char *path;
    bool removed, empty;
    HANDLE folder;

    if (!MultiByteToWideChar(CP_UTF8, 0, name, -1, wide, sizeof wide / sizeof *wide) ||
        !maker_of(wide) || is_running(maker_of(wide)))
        return 0;
    path = exti__path_join(user, name);
    folder = path ? hold_folder(path) : NULL;
    if (folder) {
        empty = !exti__fs_list(path, remove_named, path, NULL);
        CloseHandle(folder);
        if (empty)
            exti__fs_rmdir(path, &removed, NULL);
    }
    exti__free(path);
    return 0;
}

/* Makes a folder that only its owner, administrators and the system can reach. */
static bool make_private(const wchar_t *path)
{
    SECURITY_ATTRIBUTES a = {.nLength = sizeof a};
    bool made;

    if (!ConvertStringSecurityDescriptorToSecurityDescriptorW(
            L"D:P(A;OICI;FA;;;OW)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)", SDDL_REVISION_1,
            &a.lpSecurityDescriptor, NULL))
        return false;
    made = CreateDirectoryW(path, &a);
    LocalFree(a.lpSecurityDescriptor);
    return made;
}

int exti__fs_mkdtemp(char **out, struct exti_error *err)
{
    struct exti_wide base, w;
    char text[EXTI_PATH_MAX], name[64], *path;
    uint8_t random[RANDOM];
    bool removed;
    int n, rc = exti__fs_random(random, sizeof random, "a temporary name", err);

    if (rc)
        return rc;
    n = snprintf(name, sizeof name, "exti-%lx-", (unsigned long)GetCurrentProcessId());
    for (size_t i = 0; i < sizeof random; i++)
        n += snprintf(name + n, sizeof name - (size_t)n, "%02x", random[i]);
    if (!GetTempPathW(sizeof base.text / sizeof *base.text, base.text) ||
        exti__wide_to_utf8(base.text, text, sizeof text))
        return exti__fail_system(err, GetLastError(), "",
                                 "cannot find the folder for temporary files");
    exti__fs_list(text, sweep_leftover, text, NULL);
    path = exti__path_join(text, name);
    rc = path ? exti__wide_path(path, &w, err) : exti__fail_nomem(err);
    if (!rc && !make_private(w.text))
        rc = exti__fail_system(err, GetLastError(), text, "cannot make a temporary folder here");
    else if (!rc) {
        rc = exti__fs_realpath(path, out, err);
        if (rc)
            exti__fs_rmdir(path, &removed, NULL);
    }
    exti__free(path);
    return rc;
}
