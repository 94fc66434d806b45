/* Fills in the public struct exti_error, as the library does. */
#ifndef RUNTIME_FAIL_H
#define RUNTIME_FAIL_H

#include <extisolate.h>

#if defined(__GNUC__)
#define PYRT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define PYRT_PRINTF(fmt, args)
#endif

/* Returns `code`; `err` may be NULL. */
int pyrt_fail(struct exti_error *err, int code, const char *fmt, ...) PYRT_PRINTF(3, 4);

/* Describes an EXTI_E_IO error of `file` as "WHAT: strerror(os_error)", and returns EXTI_E_IO. */
int pyrt_fail_os(struct exti_error *err, int os_error, const char *file, const char *what);

#endif
