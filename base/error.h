/* Filling in struct exti_error.  The first error wins: the function that detects a fault describes
 * it, and its callers pass the error on, adding only the file's name.
 *
 * base/ is below every other folder of the library: errors, memory, views of bytes, rewrite plans,
 * image descriptions, small text helpers.  It uses no other folder; whatever depends on the
 * operating system is in base/os/. */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <errno.h>

#include <extisolate.h>

#ifndef ESTALE /* on Windows; the value is Linux's */
#define ESTALE 116
#endif

#if defined(__MINGW32__) /* a macro decides whether its printf is its own or the system's */
#include <stdio.h>
#define EXTI_PRINTF(fmt, args) __attribute__((format(__MINGW_PRINTF_FORMAT, fmt, args)))
#elif defined(__GNUC__)
#define EXTI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define EXTI_PRINTF(fmt, args)
#endif

/* Describes a fault at file offset `offset` (or EXTI_NO_OFFSET).  Returns `code`, so that callers
 * can `return exti__fail(...)`.  `err` may be NULL. */
int exti__fail(struct exti_error *err, int code, uint64_t offset, const char *fmt, ...)
    EXTI_PRINTF(4, 5);

/* Describes a failed system call on `file`, with the system's text for `os_error` after the
 * message.  Returns EXTI_E_IO, or EXTI_E_NOMEM for ENOMEM. */
int exti__fail_io(struct exti_error *err, int os_error, const char *file, const char *fmt, ...)
    EXTI_PRINTF(4, 5);

int exti__fail_nomem(struct exti_error *err);

#ifdef EXTI_ANALYZE
/* Static analysers see one source at a time: these say that what fails does not return 0. */
#define exti__fail(err, code, ...)                                                                 \
    (exti__fail((err), (code), __VA_ARGS__) < 0 && (code) < 0 ? (code) : EXTI_E_FORMAT)
#define exti__fail_io(...) (exti__fail_io(__VA_ARGS__) == EXTI_E_NOMEM ? EXTI_E_NOMEM : EXTI_E_IO)
#define exti__fail_nomem(err) (exti__fail_nomem(err), EXTI_E_NOMEM)
#endif

/* Names the file at fault unless the error already names one. */
void exti__error_file(struct exti_error *err, const char *file);

#endif
