#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/fail.h"
#include "runtime/heap.h"
#include "runtime/process.h"
#include "runtime/program.h"
#include "runtime/pyapi.h"
#include "runtime/python.h"
#include "runtime/signals.h"
#include "runtime/system.h"

struct pyrt_context {
    struct pyrt_opts opts;
    pthread_t thread;
    pid_t process; /* the one that the context was started in */
    struct exti_ctx *ctx;
    struct pyrt_heap *heap;
    struct pyrt_api py;
    union pyrt_config config;
    char **argv; /* the command line, as for a stock interpreter */
    int argc;
    struct pyrt_result result;
};

/* ---- the command line ---- */

static char **command_line(const struct pyrt_opts *o, int *argc)
{
    const struct pyrt_program *p = o->program;
    char **argv = calloc((size_t)p->argc + 4, sizeof *argv);
    int n = 0;

    if (!argv)
        return NULL;
    argv[n++] = o->python->executable;
    if (p->kind != PYRT_SCRIPT)
        argv[n++] = p->kind == PYRT_CODE ? "-c" : "-m";
    argv[n++] = (char *)p->what;
    for (int i = 0; i < p->argc; i++)
        argv[n++] = p->argv[i];
    *argc = n;
    return argv;
}

/* ---- starting the interpreter ---- */

static int start_failed(const struct pyrt_context *c, struct pyrt_status s, struct exti_error *err)
{
    return pyrt_fail(err, EXTI_E_LOAD, "CPython %s did not start: %s%s%s", c->opts.python->version,
                     s.func ? s.func : "", s.func ? ": " : "",
                     s.err_msg ? s.err_msg : "no reason given");
}

static int preinitialise(struct pyrt_context *c, struct exti_error *err)
{
    const char *utf8 = getenv("PYTHONUTF8");
    struct pyrt_preconfig pre;
    struct pyrt_status s;
    int rc = pyrt_preconfig_init(&pre, c->py.PyPreConfig_InitPythonConfig, err);

    if (rc < 0)
        return rc;
    /* The locale belongs to the process; pyrt_process_setup has set it. */
    pre.configure_locale = pre.coerce_c_locale = pre.coerce_c_locale_warn = 0;
    pre.parse_argv = 0;
    if (pyrt_process_utf8() && !(utf8 && *utf8))
        pre.utf8_mode = 1;
    s = c->py.Py_PreInitialize(&pre);
    if (s.type)
        return start_failed(c, s, err);
    /* Code that stays mapped goes on using its memory, so the heap would never be freed. */
    if (c->opts.ctx_flags & EXTI_CTX_KEEP)
        return 0;
    rc = pyrt_heap_new(&c->heap, err);
    if (rc == 0)
        pyrt_heap_install(c->heap, &c->py);
    return rc;
}

/* parse_argv stays on, so that this version of CPython computes sys.argv, sys.orig_argv and the
 * program's absolute path itself. */
static struct pyrt_status configure(struct pyrt_context *c)
{
    static const char *const names[] = {"program_name", "executable"};
    const struct pyrt_api *py = &c->py;
    struct pyrt_status s = {0};

    *pyrt_int(&c->config, py->build, "install_signal_handlers") = 0;
    *pyrt_int(&c->config, py->build, "faulthandler") = 0;
    *pyrt_int(&c->config, py->build, "configure_c_stdio") = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && s.type == 0; i++)
        s = py->PyConfig_SetBytesString(&c->config, pyrt_wstr(&c->config, py->build, names[i]),
                                        c->opts.python->executable);
    if (s.type == 0)
        s = py->PyConfig_SetBytesArgv(&c->config, c->argc, c->argv);
    if (s.type == 0)
        s = py->PyConfig_Read(&c->config);
    /* 3.9 does not record that the arguments are parsed, and would parse the remaining ones. */
    if (*pyrt_int(&c->config, py->build, "parse_argv") == 1)
        *pyrt_int(&c->config, py->build, "parse_argv") = 0;
    return s;
}

static int initialise(struct pyrt_context *c, struct exti_error *err)
{
    const struct pyrt_api *py = &c->py;
    struct pyrt_status s;
    int rc = preinitialise(c, err);

    if (rc == 0)
        rc = pyrt_config_init(&c->config, py->build, py->PyConfig_InitPythonConfig, err);
    if (rc < 0)
        return rc;
    s = configure(c);
    if (s.type == 0)
        s = py->Py_InitializeFromConfig(&c->config);
    if (s.type == 0)
        return 0;
    rc = start_failed(c, s, err);
    py->PyConfig_Clear(&c->config);
    return rc;
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

/* Makes the module `extisolate`, which tells a program about its context. */
static int add_module(const struct pyrt_context *c, struct exti_error *err)
{
    const struct pyrt_api *py = &c->py;
    struct pyobj *m = py->PyImport_AddModule("extisolate");

    if (m && py->PyModule_AddIntConstant(m, "index", c->opts.index) == 0 &&
        py->PyModule_AddIntConstant(m, "count", c->opts.count) == 0 &&
        py->PyModule_AddStringConstant(m, "name", exti_ctx_name(c->ctx)) == 0)
        return 0;
    py->PyErr_Clear();
    return pyrt_fail(err, EXTI_E_NOMEM, "cannot make the module extisolate");
}

/* CPython reports exhausted keys as lack of memory, and in places ends the process. */
static int check_keys(struct exti_error *err)
{
    pthread_key_t key;

    if (pthread_key_create(&key, NULL) != 0)
        return pyrt_fail(err, EXTI_E_LOAD,
                         "all %d thread-specific data keys of the process are in use, and CPython "
                         "needs one for each context: use fewer contexts",
                         (int)PTHREAD_KEYS_MAX);
    pthread_key_delete(key);
    return 0;
}

static int open_context(struct pyrt_context *c, struct exti_error *err)
{
    const struct pyrt_install *in = c->opts.python;
    const struct pyrt_build build = {in->minor, in->free_threaded, in->debug};
    struct exti_ctx_opts o = {
        .size = sizeof o,
        .dir = c->opts.dir,
        .api_library = in->libpython,
        .flags = c->opts.ctx_flags,
        .closure = c->opts.closure,
        .rules = c->opts.rules,
        .rule_count = c->opts.rule_count,
        .quirk_files = c->opts.quirk_files,
        .quirk_file_count = c->opts.quirk_file_count,
    };
    struct exti_module *libpython;
    int rc;

    o.redirects = pyrt_signal_redirects(&o.redirect_count);
    rc = exti_ctx_open(&c->ctx, &o, err);
    if (rc == 0)
        rc = check_keys(err);
    if (rc == 0)
        rc = exti_api(c->ctx, &libpython, err);
    if (rc == 0)
        rc = pyrt_api_find(&c->py, libpython, build, err);
    return rc;
}

/* ---- proof ---- */

static int add_leak(void *user, const struct exti_error *finding)
{
    struct pyrt_result *r = user;
    char *grown = NULL;

    if (asprintf(&grown, "%s%s: %s\n", r->leaks ? r->leaks : "", finding->file, finding->message) <
        0)
        return 1;
    free(r->leaks);
    r->leaks = grown;
    return 0;
}

/* Called with the GIL held, so that no thread of the context can load anything meanwhile. */
static void prove_isolation(struct pyrt_context *c)
{
    struct exti_proof proof = {.size = sizeof proof};

    pyrt_program_join_threads(&c->py);
    if (exti_ctx_prove(c->ctx, add_leak, &c->result, &proof, &c->result.error) < 0)
        return;
    c->result.proof = proof;
    c->result.proven = 1;
}

/* ---- the thread ---- */

/* Whether the program has forked, and this is the child. */
static int is_child(const struct pyrt_context *c)
{
    return getpid() != c->process;
}

static void run_context(struct pyrt_context *c)
{
    struct exti_error *err = &c->result.error;

    c->result.status = 1;
    if (open_context(c, err) < 0 || initialise(c, err) < 0 || add_module(c, err) < 0)
        return;
    correct_signals(&c->py);
    c->result.started = 1;
    c->result.status = pyrt_program_run(&c->py, &c->config, c->opts.index);
    c->py.PyConfig_Clear(&c->config);
    if (c->opts.prove && !is_child(c))
        prove_isolation(c);
    /* CPython's own status when buffered output cannot be written. */
    if (c->py.Py_FinalizeEx() < 0)
        c->result.status = 120;
}

static void *thread_main(void *arg)
{
    struct pyrt_context *c = arg;
    char name[16];

    snprintf(name, sizeof name, "context-%d", c->opts.index);
    pyrt_name_thread(name);
    c->process = getpid();
    run_context(c);
    /* In a forked child this is the only thread, so nobody else takes the program's status.  exit()
     * would run handlers of all contexts, and the others are in the middle of whatever their
     * threads did at the fork. */
    if (is_child(c)) {
        fflush(NULL);
        _exit(c->result.status);
    }
    return NULL;
}

/* As large as a main thread's, so that deep recursion in extensions works as in a stock process. */
static size_t stack_size(void)
{
    const size_t least = (size_t)8 << 20, most = (size_t)256 << 20;
    struct rlimit lim;

    if (getrlimit(RLIMIT_STACK, &lim) != 0 || lim.rlim_cur == RLIM_INFINITY || lim.rlim_cur < least)
        return least;
    return lim.rlim_cur > most ? most : (size_t)lim.rlim_cur;
}

int pyrt_start(struct pyrt_context **out, const struct pyrt_opts *opts, struct exti_error *err)
{
    struct pyrt_context *c = calloc(1, sizeof *c);
    pthread_attr_t attr;
    int rc = -1;

    if (c) {
        c->opts = *opts;
        c->argv = command_line(opts, &c->argc);
    }
    if (!c || !c->argv) {
        free(c);
        return pyrt_fail(err, EXTI_E_NOMEM, "out of memory");
    }
    rc = pthread_attr_init(&attr);
    if (rc == 0) {
        pthread_attr_setstacksize(&attr, stack_size());
        rc = pthread_create(&c->thread, &attr, thread_main, c);
        pthread_attr_destroy(&attr);
    }
    if (rc != 0) {
        free(c->argv);
        free(c);
        return pyrt_fail_os(err, rc, "", "cannot start the context's thread");
    }
    *out = c;
    return 0;
}

void pyrt_join(struct pyrt_context *c, struct pyrt_result *out)
{
    pthread_join(c->thread, NULL);
    *out = c->result;
}

size_t pyrt_close(struct pyrt_context *c, exti_report_fn report, void *user)
{
    size_t left;

    if (!c)
        return 0;
    exti_ctx_close_report(c->ctx, report, user, &left, NULL);
    if (left == 0)
        pyrt_heap_free(c->heap);
    free(c->result.leaks);
    free(c->argv);
    free(c);
    return left;
}
