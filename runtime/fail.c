#undef EXTI_ANALYZE /* here are the functions themselves */
#include "runtime/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int pyrt_fail(struct exti_error *err, int code, const char *fmt, ...)
{
    va_list ap;

    if (!err)
        return code;
    *err = (struct exti_error){.code = code, .offset = EXTI_NO_OFFSET};
    va_start(ap, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    return code;
}

int pyrt_fail_os(struct exti_error *err, int os_error, const char *file, const char *what)
{
    char text[128];

    if (strerror_r(os_error, text, sizeof text) != 0)
        snprintf(text, sizeof text, "error %d", os_error);
    pyrt_fail(err, EXTI_E_IO, "%s: %s", what, text);
    if (err) {
        err->os_error = os_error;
        snprintf(err->file, sizeof err->file, "%s", file);
    }
    return EXTI_E_IO;
}
