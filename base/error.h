/* Filling in struct exti_error.  The first error wins: whoever detects a fault describes it and
 * callers pass it on, adding only what they know and it lacks (the file's name). */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <errno.h>

#include <extisolate.h>

#ifndef ESTALE /* Windows; the value of Linux */
#define ESTALE 116
#endif

#if defined(__MINGW32__) /* whose printf is its own, or the system's, by a macro */
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

/* EXTI_E_IO (EXTI_E_NOMEM for ENOMEM) on `file`, with the system's words for `os_error` after the
 * message. */
int exti__fail_io(struct exti_error *err, int os_error, const char *file, const char *fmt, ...)
    EXTI_PRINTF(4, 5);

int exti__fail_nomem(struct exti_error *err);

/* Names the file at fault where the error does not name one yet. */
void exti__error_file(struct exti_error *err, const char *file);

#endif
