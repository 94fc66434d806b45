#include "runtime/embed/installation.h"

#include <stdlib.h>

#include "runtime/embed/options.h"
#include "runtime/fail.h"

int extipy_find(struct extipy_python **out, const char *executable, struct exti_error *err)
{
    struct extipy_python *python;
    int rc;

    if (!out)
        return pyrt_fail(err, EXTI_E_ARG, "out is NULL");
    python = calloc(1, sizeof *python);
    if (!python)
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    rc = pyrt_install_find(&python->install, executable, err);
    if (rc < 0)
        free(python);
    else
        *out = python;
    return rc;
}

int extipy_python_info(const struct extipy_python *python, struct extipy_python_info *out)
{
    struct extipy_python_info info;

    if (!python || !out)
        return EXTI_E_ARG;
    info = (struct extipy_python_info){
        .minor = python->install.minor,
        .free_threaded = python->install.free_threaded,
        .debug = python->install.debug,
        .version = python->install.version,
        .executable = python->install.executable,
        .libpython = python->install.libpython,
    };
    return extipy__options_write(out, &info, sizeof info);
}

void extipy_python_free(struct extipy_python *python)
{
    if (!python)
        return;
    pyrt_install_free(&python->install);
    free(python);
}
