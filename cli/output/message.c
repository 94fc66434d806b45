#include "cli/output/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "cli/os/memory.h"
#include "cli/output/text.h"

static void put_name(enum cli_style style)
{
    fflush(stdout);
    fprintf(stderr, "%sextisolate:%s ", cli_style(stderr, style), cli_style(stderr, CLI_PLAIN));
}

static void prefix(const char *file)
{
    put_name(CLI_RED);
    if (file != NULL && *file != '\0') {
        cli_put(stderr, file);
        fputs(": ", stderr);
    }
}

static void put_formatted(const char *fmt, va_list args) CLI_PRINTF(1, 0);
static void put_formatted(const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n >= 0) {
        char *text = cli_alloc((size_t)n + 1);
        vsnprintf(text, (size_t)n + 1, fmt, args);
        cli_put(stderr, text);
        free(text);
    }
    fputc('\n', stderr);
    fflush(stderr);
}

int cli_fail(const char *file, const char *fmt, ...)
{
    va_list args;

    prefix(file);
    va_start(args, fmt);
    put_formatted(fmt, args);
    va_end(args);
    return CLI_FAILED;
}

void cli_note(const char *fmt, ...)
{
    va_list args;

    put_name(CLI_YELLOW);
    fputs("note: ", stderr);
    va_start(args, fmt);
    put_formatted(fmt, args);
    va_end(args);
}

void cli_hint(const char *fmt, ...)
{
    va_list args;

    fputs("  ", stderr);
    va_start(args, fmt);
    put_formatted(fmt, args);
    va_end(args);
}

int cli_usage(const char *command, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "extisolate %s: ", command);
    va_start(args, fmt);
    put_formatted(fmt, args);
    va_end(args);
    fprintf(stderr, "  see 'extisolate help %s'\n", command);
    return CLI_USAGE;
}

/* What the user can do about an error; NULL if there is nothing to say. */
static const char *advice(const struct exti_error *err)
{
    switch (err->os_error) {
    case ENOSPC:
#ifdef EDQUOT /* not on Windows */
    case EDQUOT:
#endif
        return "free some space, or put CTXDIR on a file system that has more";
    case EROFS:
        return "choose a writable CTXDIR";
    case EACCES:
    case EPERM:
        return "check the permissions of the file and of CTXDIR";
    case ENAMETOOLONG:
        return "give the file or CTXDIR a shorter name";
    default:
        break;
    }
    switch (err->code) {
    case EXTI_E_FORMAT:
        return "the file is damaged or not a shared library: reinstall it, or use another";
    case EXTI_E_UNSUPPORTED:
        return err->offset == EXTI_NO_OFFSET
                   ? NULL
                   : "only shared libraries can be copied, such as extension modules; "
                     "'extisolate inspect' describes the file";
    case EXTI_E_BUSY:
        return "use another CTXDIR for a second context";
    case EXTI_E_TRUST:
        return "if you trust all who can change it, add --trust-dir";
    case EXTI_E_CHECK:
        return "'extisolate verify' lists what is wrong; after a copy is removed, 'extisolate "
               "copy' "
               "makes it again";
    default:
        return NULL;
    }
}

int cli_error(const struct exti_error *err, const char *file)
{
    const char *what = advice(err);

    prefix(err->file[0] != '\0' ? err->file : file);
    if (err->offset != EXTI_NO_OFFSET)
        fprintf(stderr, "offset 0x%" PRIx64 ": ", err->offset);
    cli_put(stderr, err->message);
    fputc('\n', stderr);
    fflush(stderr);
    if (what != NULL)
        cli_hint("%s", what);
    return CLI_FAILED;
}
