/* This room prints: errors and hints on stderr, JSON on stdout, the progress bar.  Every command
 * and every room but os/ uses it.  Text from the user or from a file is printed through cli_put or
 * a function that calls it, never raw: file names may hold control characters. */
#ifndef CLI_OUTPUT_MESSAGE_H
#define CLI_OUTPUT_MESSAGE_H

#include <stdio.h> /* __MINGW_PRINTF_FORMAT */

#include <extisolate.h>

/* Exit codes, which functions that print their own errors return too. */
#define CLI_OK 0
#define CLI_FAILED 1
#define CLI_USAGE 2 /* wrong usage; nothing was done */

#if defined(__MINGW_PRINTF_FORMAT)
#define CLI_PRINTF(fmt, args) __attribute__((format(__MINGW_PRINTF_FORMAT, fmt, args)))
#elif defined(__GNUC__)
#define CLI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CLI_PRINTF(fmt, args)
#endif

/* Prints "extisolate: FILE: offset 0x..: message" on stderr and, for errors with a known remedy, a
 * hint.  `file` is the fallback for an error that names no file.  Returns CLI_FAILED. */
int cli_error(const struct exti_error *err, const char *file);

/* Prints "extisolate: FILE: message" on stderr; `file` may be NULL.  Returns CLI_FAILED. */
int cli_fail(const char *file, const char *fmt, ...) CLI_PRINTF(2, 3);

/* Prints "extisolate: note: message" on stderr, about what is no error. */
void cli_note(const char *fmt, ...) CLI_PRINTF(1, 2);

/* Prints a line below an error that says what to do next. */
void cli_hint(const char *fmt, ...) CLI_PRINTF(1, 2);

/* Prints "extisolate COMMAND: message" and where to find help, on stderr.  Returns CLI_USAGE. */
int cli_usage(const char *command, const char *fmt, ...) CLI_PRINTF(2, 3);

#endif
