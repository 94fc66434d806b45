/* What the Windows files of this library share: text, paths, errors.  The API's texts are UTF-8,
 * the system's UTF-16. */
#ifndef BASE_OS_WIN32_H
#define BASE_OS_WIN32_H

#include <stddef.h>
#include <wchar.h>

#include "base/error.h"

/* A path, without an allocation that could fail.  The system's own limit is 32767. */
struct exti_wide {
    wchar_t text[8192];
};

/* The path as the system takes it: with backslashes, and one that is too long for MAX_PATH absolute
 * behind \\?\, which lifts that limit. */
int exti__wide_path(const char *path, struct exti_wide *out, struct exti_error *err);

/* EXTI_E_ARG if it does not fit. */
int exti__wide_to_utf8(const wchar_t *text, char *out, size_t cap);

/* Drops what exti__wide_path and the system put before a path: \\?\ and \\?\UNC\. */
const wchar_t *exti__wide_plain(wchar_t *path);

/* The errno that says what a GetLastError() does. */
int exti__errno_of(unsigned long code);

/* As exti__fail_io, for a GetLastError() and with the system's words for it. */
int exti__fail_system(struct exti_error *err, unsigned long code, const char *file, const char *fmt,
                      ...) EXTI_PRINTF(4, 5);

/* exti__fail_system for GetLastError(). */
int exti__fail_last(struct exti_error *err, const char *file, const char *what);

/* The system's words for a GetLastError(), in one line; "" if it has none. */
void exti__system_text(unsigned long code, char *out, size_t cap);

#endif
