#include "base/os/win32.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

#define WIDE_MAX (sizeof((struct exti_wide *)0)->text / sizeof(wchar_t))
/* CreateDirectoryW leaves room for an 8.3 name: MAX_PATH less 12. */
#define SHORT_MAX 247

int exti__errno_of(unsigned long code)
{
    static const struct {
        unsigned long code;
        int os_error;
    } table[] = {
        {ERROR_FILE_NOT_FOUND, ENOENT},
        {ERROR_PATH_NOT_FOUND, ENOENT},
        {ERROR_INVALID_DRIVE, ENOENT},
        {ERROR_INVALID_NAME, ENOENT},
        {ERROR_BAD_PATHNAME, ENOENT},
        {ERROR_BAD_NETPATH, ENOENT},
        {ERROR_BAD_NET_NAME, ENOENT},
        {ERROR_DIRECTORY, ENOTDIR},
        {ERROR_ACCESS_DENIED, EACCES},
        {ERROR_PRIVILEGE_NOT_HELD, EACCES},
        {ERROR_WRITE_PROTECT, EROFS},
        {ERROR_SHARING_VIOLATION, EBUSY},
        {ERROR_LOCK_VIOLATION, EBUSY},
        {ERROR_USER_MAPPED_FILE, EBUSY},
        {ERROR_DELETE_PENDING, EBUSY},
        {ERROR_FILE_EXISTS, EEXIST},
        {ERROR_ALREADY_EXISTS, EEXIST},
        {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},
        {ERROR_DISK_FULL, ENOSPC},
        {ERROR_HANDLE_DISK_FULL, ENOSPC},
        {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
        {ERROR_OUTOFMEMORY, ENOMEM},
        {ERROR_COMMITMENT_LIMIT, ENOMEM},
        {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
        {ERROR_NOT_SAME_DEVICE, EXDEV},
        {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
        {ERROR_CANT_RESOLVE_FILENAME, ELOOP},
        {ERROR_NO_UNICODE_TRANSLATION, EILSEQ},
        {ERROR_INVALID_PARAMETER, EINVAL},
        {ERROR_NOT_SUPPORTED, ENOSYS},
        {ERROR_CALL_NOT_IMPLEMENTED, ENOSYS},
    };

    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].code == code)
            return table[i].os_error;
    return EIO;
}

void exti__system_text(unsigned long code, char *out, size_t cap)
{
    wchar_t text[256];
    DWORD n = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS |
                                 FORMAT_MESSAGE_MAX_WIDTH_MASK,
                             NULL, code, 0, text, sizeof text / sizeof *text, NULL);

    while (n && (text[n - 1] <= L' ' || text[n - 1] == L'.'))
        n--;
    text[n] = 0;
    if (exti__wide_to_utf8(text, out, cap))
        out[0] = 0;
}

int exti__fail_system(struct exti_error *err, unsigned long code, const char *file, const char *fmt,
                      ...)
{
    int os_error = exti__errno_of(code);
    char text[256];
    va_list ap;
    size_t n;

    if (!err)
        return os_error == ENOMEM ? EXTI_E_NOMEM : EXTI_E_IO;
    *err = (struct exti_error){.code = os_error == ENOMEM ? EXTI_E_NOMEM : EXTI_E_IO,
                               .os_error = os_error,
                               .offset = EXTI_NO_OFFSET};
    va_start(ap, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    exti__system_text(code, text, sizeof text);
    n = strlen(err->message);
    if (text[0])
        snprintf(err->message + n, sizeof err->message - n, ": %s", text);
    else
        snprintf(err->message + n, sizeof err->message - n, ": error %lu", code);
    exti__error_file(err, file);
    return err->code;
}

int exti__fail_last(struct exti_error *err, const char *file, const char *what)
{
    return exti__fail_system(err, GetLastError(), file, "%s", what);
}

int exti__wide_to_utf8(const wchar_t *text, char *out, size_t cap)
{
    int size = cap < INT_MAX ? (int)cap : INT_MAX;

    return WideCharToMultiByte(CP_UTF8, 0, text, -1, out, size, NULL, NULL) ? 0 : EXTI_E_ARG;
}

static bool wide_starts_with(const wchar_t *text, const wchar_t *with)
{
    return wcsncmp(text, with, wcslen(with)) == 0;
}

const wchar_t *exti__wide_plain(wchar_t *path)
{
    if (wide_starts_with(path, L"\\\\?\\UNC\\")) {
        path[6] = L'\\';
        return path + 6;
    }
    return path + (wide_starts_with(path, L"\\\\?\\") ? 4 : 0);
}

/* Puts \\?\ before a full path of `n` characters; `w` has room for both. */
static void lift_limit(struct exti_wide *w, const wchar_t *full, size_t n)
{
    if (wide_starts_with(full, L"\\\\")) { /* a share: \\?\UNC\server\share */
        wmemcpy(w->text, L"\\\\?\\UNC", 7);
        wmemcpy(w->text + 7, full + 1, n);
    } else {
        wmemcpy(w->text, L"\\\\?\\", 4);
        wmemcpy(w->text + 4, full, n + 1);
    }
}

int exti__wide_path(const char *path, struct exti_wide *out, struct exti_error *err)
{
    struct exti_wide full;
    size_t n;

    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, out->text, WIDE_MAX))
        return exti__fail_system(err,
                                 GetLastError() == ERROR_INSUFFICIENT_BUFFER
                                     ? ERROR_FILENAME_EXCED_RANGE
                                     : GetLastError(),
                                 path, "is not a valid path");
    for (wchar_t *p = out->text; *p; p++)
        if (*p == L'/')
            *p = L'\\';
    if (wide_starts_with(out->text, L"\\\\?\\") || wide_starts_with(out->text, L"\\\\.\\"))
        return 0;
    n = GetFullPathNameW(out->text, WIDE_MAX, full.text, NULL);
    if (n > WIDE_MAX - 8)
        return exti__fail_system(err, ERROR_FILENAME_EXCED_RANGE, path, "is not a valid path");
    if (n > SHORT_MAX)
        lift_limit(out, full.text, n);
    return 0;
}
