#include <errno.h>

#include "base/mem.h"
#include "base/os/fs_win32.h"
#include "base/path.h"

static uint64_t join_dwords(DWORD high, DWORD low)
{
    return (uint64_t)high << 32 | low;
}

static struct exti_file_id id_of(const BY_HANDLE_FILE_INFORMATION *info)
{
    /* FILETIME counts 100 ns since 1601. */
    uint64_t t =
        join_dwords(info->ftLastWriteTime.dwHighDateTime, info->ftLastWriteTime.dwLowDateTime);

    return (struct exti_file_id){
        .size = join_dwords(info->nFileSizeHigh, info->nFileSizeLow),
        .inode = join_dwords(info->nFileIndexHigh, info->nFileIndexLow),
        .device = info->dwVolumeSerialNumber,
        .mtime_ns = ((int64_t)t - 116444736000000000) * 100,
        .mode = info->dwFileAttributes & FILE_ATTRIBUTE_READONLY ? 0555 : 0777,
    };
}

static int check_regular(HANDLE h, const BY_HANDLE_FILE_INFORMATION *info, const char *path,
                         struct exti_error *err)
{
    bool folder = (info->dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;

    if (!folder && GetFileType(h) == FILE_TYPE_DISK)
        return 0;
    exti__fail(err, EXTI_E_IO, EXTI_NO_OFFSET, "%s, not a regular file",
               folder ? "a directory" : "a device");
    if (err && folder)
        err->os_error = EISDIR;
    exti__error_file(err, path);
    return EXTI_E_IO;
}

static HANDLE open_wide(const struct exti_wide *w, DWORD access)
{
    /* Without this flag opening a folder fails with "access denied". */
    return CreateFileW(w->text, access, EXTI_SHARE_ALL, NULL, OPEN_EXISTING,
                       FILE_FLAG_BACKUP_SEMANTICS, NULL);
}

int exti__win32_open_regular(const char *path, DWORD access, HANDLE *out, struct exti_file_id *id,
                             struct exti_error *err)
{
    BY_HANDLE_FILE_INFORMATION info = {0};
    struct exti_wide w;
    int rc = exti__wide_path(path, &w, err);
    HANDLE h;

    if (rc)
        return rc;
    h = open_wide(&w, access);
    if (h == INVALID_HANDLE_VALUE)
        return exti__fail_last(err, path, "cannot open file");
    if (GetFileType(h) == FILE_TYPE_DISK && !GetFileInformationByHandle(h, &info))
        rc = exti__fail_last(err, path, "cannot look up file");
    else
        rc = check_regular(h, &info, path, err);
    if (rc) {
        CloseHandle(h);
        return rc;
    }
    *id = id_of(&info);
    *out = h;
    return 0;
}

bool exti__win32_id(HANDLE h, struct exti_file_id *out)
{
    BY_HANDLE_FILE_INFORMATION info;

    if (!GetFileInformationByHandle(h, &info))
        return false;
    *out = id_of(&info);
    return true;
}

int exti__fs_id(const char *path, struct exti_file_id *out, struct exti_error *err)
{
    struct exti_file_id id;
    HANDLE h;
    int rc = exti__win32_open_regular(path, FILE_READ_ATTRIBUTES, &h, &id, err);

    if (rc)
        return rc;
    CloseHandle(h);
    *out = id;
    return 0;
}

bool exti__win32_is_folder(const struct exti_wide *w)
{
    DWORD attributes = GetFileAttributesW(w->text);

    return attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY;
}

int exti__fs_realpath(const char *path, char **out, struct exti_error *err)
{
    struct exti_wide w, final;
    const size_t cap = sizeof final.text / sizeof *final.text;
    char text[EXTI_PATH_MAX];
    int rc = exti__wide_path(path, &w, err);
    DWORD n = 0;
    HANDLE h;

    if (rc)
        return rc;
    h = open_wide(&w, FILE_READ_ATTRIBUTES);
    if (h == INVALID_HANDLE_VALUE)
        return exti__fail_last(err, path, "cannot resolve path");
    n = GetFinalPathNameByHandleW(h, final.text, (DWORD)cap, 0);
    CloseHandle(h);
    /* Drivers of RAM disks may not know their volume's name. */
    if (!n || n >= cap)
        n = GetFullPathNameW(w.text, (DWORD)cap, final.text, NULL);
    if (!n || n >= cap || exti__wide_to_utf8(exti__wide_plain(final.text), text, sizeof text))
        return exti__fail_last(err, path, "cannot resolve path");
    *out = exti__strdup(text);
    return *out ? 0 : exti__fail_nomem(err);
}

bool exti__fs_is_named_itself(const char *path)
{
    (void)path;
    return false;
}
