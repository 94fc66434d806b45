/* Text, paths and errors on Windows.  The library's strings are UTF-8, the system's UTF-16. */
#ifndef BASE_OS_WIN32_H
#define BASE_OS_WIN32_H

#include <stddef.h>
#include <wchar.h>

#include "base/error.h"

/* A path in a fixed buffer, so that no allocation can fail.  The system's own limit is 32767. */
struct exti_wide {
    wchar_t text[8192];
};

/* Converts a path to the system's form, with backslashes.  A path too long for MAX_PATH becomes
 * absolute behind \\?\, which lifts that limit. */
int exti__wide_path(const char *path, struct exti_wide *out, struct exti_error *err);

/* Converts to UTF-8; EXTI_E_ARG if it does not fit. */
int exti__wide_to_utf8(const wchar_t *text, char *out, size_t cap);

/* Removes the prefixes \\?\ and \\?\UNC\ that exti__wide_path and the system put before paths. */
const wchar_t *exti__wide_plain(wchar_t *path);

/* Gives the errno with the meaning of a GetLastError(). */
int exti__errno_of(unsigned long code);

/* Like exti__fail_io, but for a GetLastError(). */
int exti__fail_system(struct exti_error *err, unsigned long code, const char *file, const char *fmt,
                      ...) EXTI_PRINTF(4, 5);

/* exti__fail_system for GetLastError(). */
int exti__fail_last(struct exti_error *err, const char *file, const char *what);

/* Gives the system's text for a GetLastError(), in one line; "" if it has none. */
void exti__system_text(unsigned long code, char *out, size_t cap);

#endif
