#define _GNU_SOURCE
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/process.h"
#include "runtime/system.h"

static int c_locale;

static int is_c(const char *name)
{
    return name && (strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0);
}

/* PEP 538: in the C locale a stock interpreter switches itself, and through LC_CTYPE its children,
 * to UTF-8, unless LC_ALL or PYTHONCOERCECLOCALE=0 forbid it. */
static void coerce(void)
{
    static const char *const targets[] = {"C.UTF-8", "C.utf8", "UTF-8"};
    const char *all = getenv("LC_ALL"), *off = getenv("PYTHONCOERCECLOCALE");

    if ((all && *all) || (off && strcmp(off, "0") == 0))
        return;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        if (setlocale(LC_CTYPE, targets[i])) {
            setenv("LC_CTYPE", targets[i], 1);
            return;
        }
    }
}

static void share_processors(int contexts)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"};
    int n = pyrt_processors();
    char text[16];

    snprintf(text, sizeof text, "%d", n > contexts ? n / contexts : 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        setenv(names[i], text, 0);
}

void pyrt_process_setup(int contexts)
{
    setlocale(LC_CTYPE, "");
    c_locale = is_c(setlocale(LC_CTYPE, NULL));
    if (c_locale)
        coerce();
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (contexts > 1)
        share_processors(contexts);
}

int pyrt_process_utf8(void)
{
    return c_locale;
}
