#include "runtime/start.h"

#include <signal.h>
#include <stdlib.h>

#include "runtime/fail.h"
#include "runtime/process.h"

static int start_failed(const struct pyrt_startup *how, struct pyrt_status s,
                        struct exti_error *err)
{
    return pyrt_fail(err, EXTI_E_LOAD, "CPython %s did not start: %s%s%s", how->python->version,
                     s.func ? s.func : "", s.func ? ": " : "",
                     s.err_msg ? s.err_msg : "no reason given");
}

static int preinitialise(struct pyrt_heap **heap, const struct pyrt_api *py,
                         const struct pyrt_startup *how, struct exti_error *err)
{
    const char *utf8 = getenv("PYTHONUTF8");
    struct pyrt_preconfig pre;
    struct pyrt_status s;
    int rc = pyrt_preconfig_init(&pre, py->PyPreConfig_InitPythonConfig, err);

    if (rc < 0)
        return rc;
    /* The locale belongs to the process; pyrt_process_setup has set it. */
    pre.configure_locale = pre.coerce_c_locale = pre.coerce_c_locale_warn = 0;
    pre.parse_argv = 0;
    if (pyrt_process_utf8() && !(utf8 && *utf8))
        pre.utf8_mode = 1;
    s = py->Py_PreInitialize(&pre);
    if (s.type)
        return start_failed(how, s, err);
    /* Code that stays mapped goes on using its memory, so the heap would never be freed. */
    if (how->keep)
        return 0;
    rc = pyrt_heap_new(heap, err);
    if (rc == 0)
        pyrt_heap_install(*heap, py);
    return rc;
}

/* parse_argv stays on, so that this version of CPython computes sys.argv, sys.orig_argv and the
 * program's absolute path itself. */
static struct pyrt_status configure(union pyrt_config *config, const struct pyrt_api *py,
                                    const struct pyrt_startup *how)
{
    static const char *const names[] = {"program_name", "executable"};
    struct pyrt_status s = {0};

    *pyrt_int(config, py->build, "install_signal_handlers") = 0;
    *pyrt_int(config, py->build, "faulthandler") = 0;
    *pyrt_int(config, py->build, "configure_c_stdio") = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && s.type == 0; i++)
        s = py->PyConfig_SetBytesString(config, pyrt_wstr(config, py->build, names[i]),
                                        how->python->executable);
    if (s.type == 0)
        s = py->PyConfig_SetBytesArgv(config, how->argc, how->argv);
    if (s.type == 0)
        s = py->PyConfig_Read(config);
    /* 3.9 does not record that the arguments are parsed, and would parse the remaining ones. */
    if (*pyrt_int(config, py->build, "parse_argv") == 1)
        *pyrt_int(config, py->build, "parse_argv") = 0;
    return s;
}

/* From 3.10 on, the signal module sets a SIGINT handler when it is imported, whatever the
 * configuration says.  The redirect refuses, but the module records the handler as set, and
 * asyncio.run would rely on that. */
static void correct_signals(const struct pyrt_api *py)
{
    struct pyobj *m = py->PyImport_ImportModule("_signal"), *result = NULL;

    if (m)
        result = py->PyObject_CallMethod(m, "signal", "ii", SIGINT, 0 /* SIG_DFL */);
    /* Fails where the host does something else with SIGINT; the module has noticed that itself. */
    if (!result)
        py->PyErr_Clear();
    py->Py_DecRef(result);
    py->Py_DecRef(m);
}

int pyrt_initialise(union pyrt_config *config, struct pyrt_heap **heap, const struct pyrt_api *py,
                    const struct pyrt_startup *how, struct exti_error *err)
{
    struct pyrt_status s;
    int rc = preinitialise(heap, py, how, err);

    if (rc == 0)
        rc = pyrt_config_init(config, py->build, py->PyConfig_InitPythonConfig, err);
    if (rc < 0)
        return rc;
    s = configure(config, py, how);
    if (s.type == 0)
        s = py->Py_InitializeFromConfig(config);
    if (s.type == 0) {
        correct_signals(py);
        return 0;
    }
    rc = start_failed(how, s, err);
    py->PyConfig_Clear(config);
    return rc;
}
