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

#ifdef EXTI_ANALYZE
/* As in base/error.h. */
#define pyrt_fail(err, code, ...)                                                                  \
    (pyrt_fail((err), (code), __VA_ARGS__), (code) < 0 ? (code) : EXTI_E_FORMAT)
#define pyrt_fail_os(...) (pyrt_fail_os(__VA_ARGS__), EXTI_E_IO)
#endif

#endif
