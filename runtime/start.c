#include "runtime/start.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/arenas.h"
#include "runtime/fail.h"
#include "runtime/initconfig.h"
#include "runtime/process.h"
#include "runtime/pyconfig.h"

/* The member of PyPreConfig that a caller may set by `name`, or NULL.  `only` tells that PyConfig
 * has none of that name. */
static int *preconfig_member(struct pyrt_preconfig *pre, const char *name, int *only)
{
    const struct {
        const char *name;
        int *member;
        int only; /* not in PyConfig */
    } known[] = {
        {"isolated", &pre->isolated, 0},   {"use_environment", &pre->use_environment, 0},
        {"dev_mode", &pre->dev_mode, 0},   {"utf8_mode", &pre->utf8_mode, 1},
        {"allocator", &pre->allocator, 1},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) {
            *only = known[i].only;
            return known[i].member;
        }
    *only = 0;
    return NULL;
}

static int preinitialise(const struct pyrt_api *py, const struct pyrt_startup *how,
                         struct exti_error *err)
{
    const char *utf8 = getenv("PYTHONUTF8");
    struct pyrt_preconfig pre;
    struct pyrt_status s;
    int rc = pyrt_preconfig_init(&pre, py->PyPreConfig_InitPythonConfig, err), only, *member;

    if (rc < 0)
        return rc;
    /* The locale belongs to the process; pyrt_process_setup has set it. */
    pre.configure_locale = pre.coerce_c_locale = pre.coerce_c_locale_warn = 0;
    pre.parse_argv = 0;
    if (pyrt_process_utf8() && !(utf8 && *utf8))
        pre.utf8_mode = 1;
    for (size_t i = 0; i < how->setting_count; i++)
        if ((member = preconfig_member(&pre, how->settings[i].name, &only)))
            *member = (int)how->settings[i].number;
    s = py->Py_PreInitialize(&pre);
    if (s.type)
        return pyrt_fail(err, EXTI_E_LOAD, "CPython %s did not start: %s%s%s", how->python->version,
                         s.func ? s.func : "", s.func ? ": " : "",
                         s.err_msg ? s.err_msg : "no reason given");
    return 0;
}

/* Contexts that are kept are few, or are proved: each may have huge pages, however small it is. */
static void *take_arena(void *unused, size_t size)
{
    (void)unused;
    return pyrt_arena_take(size, SIZE_MAX);
}

static void give_arena(void *unused, void *arena, size_t size)
{
    (void)unused;
    pyrt_arena_give(arena, size);
}

static int give_memory(struct pyrt_heap **heap, const struct pyrt_api *py,
                       const struct pyrt_startup *how, struct exti_error *err)
{
    const struct pyrt_arenas arenas = {NULL, take_arena, give_arena};
    int rc;

    /* Code that stays mapped goes on using its memory, so the heap would never be freed. */
    if (how->keep) {
        py->PyObject_SetArenaAllocator(&arenas);
        return 0;
    }
    rc = pyrt_heap_new(heap, err);
    if (rc == 0)
        pyrt_heap_install(*heap, py);
    return rc;
}

/* The command line is not left to CPython to parse: what a program is given is never meant for it,
 * and program.c runs the program. */
static int set_own(struct pyrt_initconfig *config, const struct pyrt_startup *how,
                   struct exti_error *err)
{
    const struct pyrt_command *command = how->command;
    const struct pyrt_setting own[] = {
        {.name = "configure_c_stdio", .number = 0},
        {.name = "parse_argv", .number = 0},
        {.name = "program_name", .kind = PYRT_SET_TEXT, .text = how->python->executable},
        {.name = "executable", .kind = PYRT_SET_TEXT, .text = how->python->executable},
        {"argv", PYRT_SET_LIST, .list = command->argv, .count = command->argc},
        {"orig_argv", PYRT_SET_LIST, .list = command->words, .count = command->word_count},
    };
    const struct pyrt_setting signals[] = {
        {.name = "install_signal_handlers", .number = 0},
        {.name = "faulthandler", .number = 0},
    };
    size_t count = sizeof own / sizeof *own - (how->python->minor < 10); /* no orig_argv */
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = pyrt_initconfig_set(config, &own[i], err);
    for (size_t i = 0; i < sizeof signals / sizeof *signals && !how->program && rc == 0; i++)
        rc = pyrt_initconfig_set(config, &signals[i], err);
    return rc;
}

static int set_callers(struct pyrt_initconfig *config, const struct pyrt_startup *how,
                       struct exti_error *err)
{
    struct pyrt_preconfig pre;
    int rc = 0, only;

    for (size_t i = 0; i < how->setting_count && rc == 0; i++) {
        preconfig_member(&pre, how->settings[i].name, &only);
        if (!only)
            rc = pyrt_initconfig_set(config, &how->settings[i], err);
    }
    return rc;
}

/* From 3.10 on, the signal module sets a SIGINT handler when it is imported, whatever the
 * configuration says: the program would be left to handle ^C, and the context handle it as well. */
static void correct_signals(const struct pyrt_api *py)
{
    struct pyobj *m = py->PyImport_ImportModule("_signal"), *result = NULL;

    if (m)
        result = py->PyObject_CallMethod(m, "signal", "ii", SIGINT, 0 /* SIG_DFL */);
    if (!result)
        py->PyErr_Clear();
    py->Py_DecRef(result);
    py->Py_DecRef(m);
}

int pyrt_initialise(struct pyrt_heap **heap, const struct pyrt_api *py,
                    const struct pyrt_startup *how, struct exti_error *err)
{
    struct pyrt_initconfig *config = NULL;
    int rc = preinitialise(py, how, err);

    if (rc == 0)
        rc = give_memory(heap, py, how, err);
    if (rc == 0)
        rc = pyrt_initconfig_new(&config, py, how->python->version, err);
    if (rc == 0)
        rc = set_own(config, how, err);
    if (rc == 0)
        rc = set_callers(config, how, err);
    if (rc == 0)
        rc = pyrt_initconfig_start(config, err);
    pyrt_initconfig_free(config);
    if (rc == 0 && !how->program)
        correct_signals(py);
    return rc;
}
