#include "runtime/aborting.h"

#include <string.h>
#include <unistd.h>

#include "runtime/system.h"

void pyrt_aborting_prepare(void)
{
    pyrt_backtrace_prepare();
}

static void put(const char *text)
{
    const ssize_t written = write(STDERR_FILENO, text, strlen(text));

    (void)written; /* there is nobody to tell */
}

void pyrt_aborting_tell(const char *context)
{
    put("extisolate: context ");
    put(context);
    put(": abort was called, which ends the process, by:\n");
    pyrt_backtrace_write(STDERR_FILENO);
}
