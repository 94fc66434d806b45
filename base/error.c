#undef EXTI_ANALYZE /* here are the functions themselves */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define STRING(x) #x
#define VERSION_TEXT(major, minor, patch) STRING(major) "." STRING(minor) "." STRING(patch)

#define CODES(X)                                                                                   \
    X(EXTI_OK)                                                                                     \
    X(EXTI_E_ARG)                                                                                  \
    X(EXTI_E_NOMEM)                                                                                \
    X(EXTI_E_IO)                                                                                   \
    X(EXTI_E_FORMAT)                                                                               \
    X(EXTI_E_UNSUPPORTED)                                                                          \
    X(EXTI_E_NOSPACE)                                                                              \
    X(EXTI_E_LOAD)                                                                                 \
    X(EXTI_E_NOSYM)                                                                                \
    X(EXTI_E_HOOK)                                                                                 \
    X(EXTI_E_INTERPOSED)                                                                           \
    X(EXTI_E_CHECK)                                                                                \
    X(EXTI_E_BUSY)                                                                                 \
    X(EXTI_E_TRUST)                                                                                \
    X(EXTI_E_CAPTURED)

const char *exti_code_name(int code)
{
    switch (code) {
#define CASE(name)                                                                                 \
    case name:                                                                                     \
        return #name;
        CODES(CASE)
#undef CASE
    default:
        return "unknown error code";
    }
}

const char *exti_version(void)
{
    return VERSION_TEXT(EXTI_VERSION_MAJOR, EXTI_VERSION_MINOR, EXTI_VERSION_PATCH);
}

int exti__fail(struct exti_error *err, int code, uint64_t offset, const char *fmt, ...)
{
    va_list ap;

    if (!err)
        return code;
    *err = (struct exti_error){.code = code, .offset = offset};
    va_start(ap, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    return code;
}

/* glibc's strerror_r looks for a translation, under a lock which a forked child may find taken for
 * ever; since 2.32 glibc tells the text itself, too. */
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 32)
extern const char *strerrordesc_np(int); /* <string.h> has it with a strerror_r of another type */
#define HAVE_STRERRORDESC
#endif
#endif

static bool error_text(int os_error, char *out, size_t cap)
{
#ifdef _WIN32
    return os_error != ESTALE && strerror_s(out, cap, os_error) == 0;
#elif defined(HAVE_STRERRORDESC)
    const char *text = strerrordesc_np(os_error);

    return text && snprintf(out, cap, "%s", text) > 0;
#else
    return strerror_r(os_error, out, cap) == 0;
#endif
}

int exti__fail_io(struct exti_error *err, int os_error, const char *file, const char *fmt, ...)
{
    int code = os_error == ENOMEM ? EXTI_E_NOMEM : EXTI_E_IO;
    char text[128];
    va_list ap;
    size_t n;

    if (!err)
        return code;
    *err = (struct exti_error){.code = code, .os_error = os_error, .offset = EXTI_NO_OFFSET};
    va_start(ap, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    if (error_text(os_error, text, sizeof text)) {
        n = strlen(err->message);
        snprintf(err->message + n, sizeof err->message - n, ": %s", text);
    }
    exti__error_file(err, file);
    return code;
}

int exti__fail_nomem(struct exti_error *err)
{
    return exti__fail(err, EXTI_E_NOMEM, EXTI_NO_OFFSET, "out of memory");
}

void exti__error_file(struct exti_error *err, const char *file)
{
    size_t n;

    if (!err || !file || err->file[0])
        return;
    n = strlen(file);
    if (n >= sizeof err->file)
        file += n - (sizeof err->file - 1);
    snprintf(err->file, sizeof err->file, "%s", file);
}
