#include "base/os/fs_lock.h"

#include <errno.h>
#include <string.h>

#include "base/os/fs_remove.h"
#include "base/os/fs_win32.h"

#include <winternl.h> /* after windows.h */

#define STATUS_DELETE_PENDING ((NTSTATUS)0xC0000056)
#define ATTEMPTS 200
#define ROUNDS 1000 /* each but the last has met a process that removed the file just then */

NTSYSAPI NTSTATUS NTAPI RtlGetLastNtStatus(void);

static HANDLE open_lock_file(const struct exti_wide *w, DWORD access, DWORD how)
{
    /* A lock file is written to, and a link in its place must not redirect that to another file. */
    return CreateFileW(w->text, access, EXTI_SHARE_ALL, NULL, how,
                       FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT, NULL);
}

/* On some file systems a removed file keeps its name until everyone has closed it. */
static bool is_delete_pending(void)
{
    return GetLastError() == ERROR_ACCESS_DENIED && RtlGetLastNtStatus() == STATUS_DELETE_PENDING;
}

/* A file opened for reading can be locked too, if nothing can be written there. */
static HANDLE open_lock(const struct exti_wide *w, bool *made)
{
    HANDLE h = open_lock_file(w, GENERIC_READ | GENERIC_WRITE, CREATE_NEW);
    DWORD code;

    *made = h != INVALID_HANDLE_VALUE;
    if (*made || is_delete_pending())
        return h;
    code = GetLastError();
    if (code != ERROR_FILE_EXISTS && code != ERROR_ACCESS_DENIED && code != ERROR_WRITE_PROTECT)
        return h;
    h = open_lock_file(w, GENERIC_READ | GENERIC_WRITE, OPEN_EXISTING);
    if (h == INVALID_HANDLE_VALUE && !is_delete_pending() &&
        (GetLastError() == ERROR_ACCESS_DENIED || GetLastError() == ERROR_WRITE_PROTECT))
        h = open_lock_file(w, GENERIC_READ, OPEN_EXISTING);
    if (h == INVALID_HANDLE_VALUE && GetLastError() == ERROR_FILE_NOT_FOUND)
        SetLastError(code);
    return h;
}

static bool is_link(HANDLE h)
{
    BY_HANDLE_FILE_INFORMATION info;

    return GetFileInformationByHandle(h, &info) &&
           info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT;
}

/* Whether `w` still names the locked file.  It does not when the lock's last holder removed it:
 * then the next to come creates another file and would not meet us. */
static bool still_named(HANDLE ours, const struct exti_wide *w)
{
    BY_HANDLE_FILE_INFORMATION a, b;
    HANDLE h = open_lock_file(w, FILE_READ_ATTRIBUTES, OPEN_EXISTING);
    bool same;

    if (h == INVALID_HANDLE_VALUE)
        return false;
    same = GetFileInformationByHandle(ours, &a) && GetFileInformationByHandle(h, &b) &&
           a.nFileIndexLow == b.nFileIndexLow && a.nFileIndexHigh == b.nFileIndexHigh &&
           a.dwVolumeSerialNumber == b.dwVolumeSerialNumber;
    CloseHandle(h);
    return same;
}

/* Others can neither read nor write a locked byte, so this locks one far behind the text. */
static bool lock_handle(HANDLE h, bool lock)
{
    OVERLAPPED at = {.OffsetHigh = 0x7fffffff};

    return lock ? LockFileEx(h, LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &at)
                : UnlockFileEx(h, 0, 1, 0, &at);
}

int exti__fs_lock(const char *path, struct exti_lock *out, struct exti_error *err)
{
    struct exti_wide w;
    int rc = exti__wide_path(path, &w, err);

    for (int attempts = 0, rounds = 0; !rc; rounds++) {
        bool made;
        HANDLE h;

        if (rounds == ROUNDS)
            return exti__fail_io(err, EBUSY, path,
                                 "cannot lock file: others have removed it %d times meanwhile",
                                 ROUNDS);
        h = open_lock(&w, &made);
        if (h == INVALID_HANDLE_VALUE && GetLastError() == ERROR_FILE_EXISTS) /* removed since */
            continue;
        if (h == INVALID_HANDLE_VALUE && is_delete_pending() && attempts++ < ATTEMPTS) {
            Sleep(5);
            continue;
        }
        if (h == INVALID_HANDLE_VALUE)
            return exti__fail_system(err, GetLastError(), path, "cannot open lock file");
        if (is_link(h)) {
            CloseHandle(h);
            return exti__fail_io(err, ELOOP, path, "cannot open lock file: it is a link");
        }
        if (!lock_handle(h, true)) {
            rc = exti__fail_system(err, GetLastError(), path, "cannot lock file");
            if (made)
                exti__fs_remove(path, NULL);
            CloseHandle(h);
        } else if (still_named(h, &w)) {
            *out = (struct exti_lock){h, made};
            return 0;
        } else {
            CloseHandle(h);
        }
    }
    return rc;
}

bool exti__fs_lock_can_write(const struct exti_lock *lock)
{
    DWORD done;

    return WriteFile(lock->file, "", 0, &done, NULL);
}

int exti__fs_lock_note(const struct exti_lock *lock, const char *text, bool sync,
                       struct exti_error *err)
{
    LARGE_INTEGER start = {.QuadPart = 0};
    DWORD done, n = (DWORD)strlen(text);

    if (SetFilePointerEx(lock->file, start, NULL, FILE_BEGIN) && SetEndOfFile(lock->file) &&
        WriteFile(lock->file, text, n, &done, NULL) && done == n &&
        (!sync || FlushFileBuffers(lock->file)))
        return 0;
    return exti__fail_system(err, GetLastError(), "", "cannot write the lock file");
}

void exti__fs_unlock(struct exti_lock *lock)
{
    if (!lock->file)
        return;
    lock_handle(lock->file, false);
    CloseHandle(lock->file);
    lock->file = NULL;
}
