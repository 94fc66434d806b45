#include "cli/output/message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

#include "cli/os/memory.h"
#include "cli/output/text.h"

/* One call for the line: the C library's buffer for stderr, which has none of its own, keeps what
 * contexts print at once apart. */
static void put_line(enum cli_style style, const char *file, const char *kind, const char *text)
{
    char *safe_file = cli_safe(file != NULL ? file : ""), *safe = cli_safe(text);

    fflush(stdout);
    fprintf(stderr, "%sextisolate:%s %s%s%s%s\n", cli_style(stderr, style),
            cli_style(stderr, CLI_PLAIN), safe_file, *safe_file != '\0' ? ": " : "", kind, safe);
    fflush(stderr);
    free(safe);
    free(safe_file);
}

/* The caller frees it. */
static char *formatted(const char *fmt, va_list args) CLI_PRINTF(1, 0);
static char *formatted(const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *text = cli_zeroed(1, n >= 0 ? (size_t)n + 1 : 1);
    if (n >= 0)
        vsnprintf(text, (size_t)n + 1, fmt, args);
    return text;
}

int cli_fail(const char *file, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *text = formatted(fmt, args);
    va_end(args);
    put_line(CLI_RED, file, "", text);
    free(text);
    return CLI_FAILED;
}

void cli_note(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *text = formatted(fmt, args);
    va_end(args);
    put_line(CLI_YELLOW, NULL, "note: ", text);
    free(text);
}

void cli_hint(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *text = formatted(fmt, args), *safe = cli_safe(text);
    va_end(args);
    fprintf(stderr, "  %s\n", safe);
    fflush(stderr);
    free(safe);
    free(text);
}

int cli_usage(const char *command, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    char *text = formatted(fmt, args), *safe = cli_safe(text);
    va_end(args);
    fprintf(stderr, "extisolate %s: %s\n  see 'extisolate help %s'\n", command, safe, command);
    fflush(stderr);
    free(safe);
    free(text);
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
        return "free some space, or write to a file system that has more";
    case EROFS:
        return "choose a writable CTXDIR or OUT";
    case EACCES:
    case EPERM:
        return "check the permissions of the file and of the folder to write to";
    case ENAMETOOLONG:
        return "use a shorter name, or a folder with a shorter path";
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
    char offset[sizeof "offset 0x: " + 16] = "";

    if (err->offset != EXTI_NO_OFFSET)
        snprintf(offset, sizeof offset, "offset 0x%" PRIx64 ": ", err->offset);
    put_line(CLI_RED, err->file[0] != '\0' ? err->file : file, offset, err->message);
    if (what != NULL)
        cli_hint("%s", what);
    return CLI_FAILED;
}
