#include "runtime/program.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/uncaught.h"

/* What the functions below share. */
struct run {
    const struct pyrt_api *py;
    int index;
    struct pyobj *globals; /* of __main__, borrowed */
};

/* Releases `result` and returns the exit status; NULL stands for an exception that is set. */
static int exit_status_of(const struct run *r, struct pyobj *result)
{
    if (!result)
        return pyrt_uncaught(r->py, r->index);
    r->py->Py_DecRef(result);
    return 0;
}

/* Whether PYTHONSAFEPATH (3.11) or an option keeps the program's directory off sys.path. */
static int safe_path(const struct run *r)
{
    const struct pyrt_api *py = r->py;
    struct pyobj *flags = py->PySys_GetObject("flags"), *flag = NULL;
    int on;

    if (flags && py->build.minor >= 11)
        flag = py->PyObject_GetAttrString(flags, "safe_path");
    on = flag && py->PyLong_AsLong(flag) == 1;
    if (!flag)
        py->PyErr_Clear();
    py->Py_DecRef(flag);
    return on;
}

/* Sets sys.argv, also to what is no text, and with `update_path` makes the program's directory,
 * which depends on the kind of argv[0], the first one of sys.path. */
static int set_argv(const struct run *r, const struct pyrt_command *command, int update_path)
{
    const struct pyrt_api *py = r->py;
    wchar_t **argv = calloc(command->argc + 1, sizeof *argv);
    size_t n = 0;
    int rc = -1;

    while (argv && n < command->argc && (argv[n] = py->Py_DecodeLocale(command->argv[n], NULL)))
        n++;
    if (n == command->argc) {
        py->PySys_SetArgvEx((int)n, argv, update_path);
        rc = 0;
    } else {
        py->PyErr_NoMemory();
    }
    while (n > 0)
        py->PyMem_RawFree(argv[--n]);
    free(argv);
    return rc;
}

/* What -m calls.  The messages are the interpreter's own: from 3.14 on one for both steps. */
static struct pyobj *module_runner(const struct pyrt_api *py)
{
    static const char runner[] = "_run_module_as_main";
    struct pyobj *runpy = py->PyImport_ImportModule("runpy");
    struct pyobj *main_fn = runpy ? py->PyObject_GetAttrString(runpy, runner) : NULL;

    if (!main_fn && py->build.minor >= 14)
        py->PySys_WriteStderr("Could not import runpy.%s\n", runner);
    else if (!runpy)
        py->PySys_WriteStderr("Could not import runpy module\n");
    else if (!main_fn)
        py->PySys_WriteStderr("Could not access runpy.%s\n", runner);
    py->Py_DecRef(runpy);
    return main_fn;
}

static int run_module(const struct run *r, const char *name, int set_argv0)
{
    const struct pyrt_api *py = r->py;
    struct pyobj *main_fn = module_runner(py), *module = NULL, *result = NULL;

    if (main_fn)
        module = py->PyUnicode_DecodeFSDefault(name);
    if (module && py->PySys_Audit("cpython.run_module", "O", module) == 0)
        result = py->PyObject_CallFunction(main_fn, "Oi", module, set_argv0);
    py->Py_DecRef(module);
    py->Py_DecRef(main_fn);
    return exit_status_of(r, result);
}

/* From 3.14 on, -c accepts indented code. */
static struct pyobj *dedented(const struct run *r, struct pyobj *source)
{
    const struct pyrt_api *py = r->py;
    const char *s = r->py->PyUnicode_AsUTF8AndSize(source, NULL);
    struct pyobj *textwrap, *result;

    if (!s) {
        py->PySys_WriteStderr("Unable to decode the command from the command line:\n");
        return NULL;
    }
    s += strspn(s, "\n");
    if (py->build.minor < 14 || (*s != ' ' && *s != '\t')) {
        py->Py_IncRef(source);
        return source;
    }
    textwrap = py->PyImport_ImportModule("textwrap");
    if (!textwrap)
        return NULL;
    result = py->PyObject_CallMethod(textwrap, "dedent", "O", source);
    py->Py_DecRef(textwrap);
    return result;
}

/* linecache of 3.13.5 and later finds sources by code objects, before that by names of files. */
static bool is_found_by_code(const struct pyrt_api *py, struct pyobj *linecache)
{
    struct pyobj *by_code = py->PyObject_GetAttrString(linecache, "_interactive_cache");

    if (!by_code)
        py->PyErr_Clear();
    py->Py_DecRef(by_code);
    return by_code != NULL;
}

/* From 3.13 on, tracebacks show lines of -c code, which must be registered with linecache. */
static int show_source(const struct run *r, struct pyobj *code, const char *source)
{
    const struct pyrt_api *py = r->py;
    struct pyobj *linecache, *result;

    if (py->build.minor < 13)
        return 0;
    linecache = py->PyImport_ImportModule("linecache");
    if (!linecache)
        return -1;
    result =
        is_found_by_code(py, linecache)
            ? py->PyObject_CallMethod(linecache, "_register_code", "Oss", code, source, "<string>")
            : py->PyObject_CallMethod(linecache, "_register_code", "sss", "<string>", source,
                                      "<string>");
    py->Py_DecRef(linecache);
    py->Py_DecRef(result);
    return result ? 0 : -1;
}

static struct pyobj *eval_source(const struct run *r, struct pyobj *text)
{
    const struct pyrt_api *py = r->py;
    struct pyrt_compiler_flags flags = {PYRT_IGNORE_COOKIE, py->build.minor};
    const char *source = py->PyUnicode_AsUTF8AndSize(text, NULL);
    struct pyobj *code, *result = NULL;

    if (!source)
        return NULL;
    code = py->Py_CompileStringExFlags(source, "<string>", PYRT_FILE_INPUT, &flags, -1);
    if (!code)
        return NULL;
    if (show_source(r, code, source) == 0)
        result = py->PyEval_EvalCode(code, r->globals, r->globals);
    py->Py_DecRef(code);
    return result;
}

static int run_code(const struct run *r, const char *source)
{
    const struct pyrt_api *py = r->py;
    struct pyobj *given, *text = NULL, *result = NULL;
    char *line = malloc(strlen(source) + 2);

    if (!line)
        return exit_status_of(r, py->PyErr_NoMemory());
    /* As in CPython, so that a comment or a block may be last. */
    sprintf(line, "%s\n", source);
    given = py->PyUnicode_DecodeFSDefault(line);
    free(line);
    if (given && py->PySys_Audit("cpython.run_command", "O", given) == 0)
        text = dedented(r, given);
    if (text)
        result = eval_source(r, text);
    py->Py_DecRef(text);
    py->Py_DecRef(given);
    return exit_status_of(r, result);
}

/* Sets __main__.__loader__, through which linecache and inspect find the source. */
static struct pyobj *set_loader(const struct run *r, struct pyobj *file, const char *type)
{
    const struct pyrt_api *py = r->py;
    struct pyobj *module = py->PyImport_ImportModule("_frozen_importlib_external"), *loader = NULL;

    if (module)
        loader = py->PyObject_CallMethod(module, type, "sO", "__main__", file);
    if (loader && py->PyDict_SetItemString(r->globals, "__loader__", loader) != 0) {
        py->Py_DecRef(loader);
        loader = NULL;
    }
    py->Py_DecRef(module);
    return loader;
}

static int is_bytecode(const struct run *r, FILE *f, const char *path)
{
    const char *dot = strrchr(path, '.');
    unsigned char magic[2];
    long wanted;
    int yes = 0;

    if (dot && strcmp(dot, ".pyc") == 0)
        return 1;
    if (fread(magic, 1, sizeof magic, f) == sizeof magic) {
        wanted = r->py->PyImport_GetMagicNumber() & 0xFFFF;
        yes = (magic[0] | magic[1] << 8) == wanted;
    }
    rewind(f);
    return yes;
}

static struct pyobj *eval_file(const struct run *r, FILE *f, struct pyobj *file, const char *path)
{
    const struct pyrt_api *py = r->py;
    int bytecode = is_bytecode(r, f, path);
    struct pyobj *loader, *code, *result = NULL;

    loader = set_loader(r, file, bytecode ? "SourcelessFileLoader" : "SourceFileLoader");
    if (!loader || bytecode) {
        fclose(f);
        code = loader ? py->PyObject_CallMethod(loader, "get_code", "s", "__main__") : NULL;
        if (code)
            result = py->PyEval_EvalCode(code, r->globals, r->globals);
        py->Py_DecRef(code);
    } else {
        /* Closes the file. */
        result = py->PyRun_FileExFlags(f, path, PYRT_FILE_INPUT, r->globals, r->globals, 1, NULL);
    }
    py->Py_DecRef(loader);
    return result;
}

/* Opens the script, or prints CPython's message about it and sets the exit status. */
static FILE *open_script(const struct run *r, const char *path, int *status)
{
    struct stat st;
    FILE *f = fopen(path, "rbe");

    if (!f) {
        *status = 2;
        r->py->PySys_WriteStderr("context %d: can't open file '%.800s': [Errno %d] %.80s\n",
                                 r->index, path, errno, strerror(errno));
    } else if (fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
        *status = 1;
        r->py->PySys_WriteStderr("context %d: '%.800s' is a directory, cannot continue\n", r->index,
                                 path);
        fclose(f);
        f = NULL;
    }
    return f;
}

static int run_file(const struct run *r, const char *path)
{
    const struct pyrt_api *py = r->py;
    struct pyobj *file = py->PyUnicode_DecodeFSDefault(path), *result = NULL;
    int cached = py->build.minor < 15, status = 0; /* 3.15 has no __cached__ any more */
    FILE *f = NULL;

    if (file && py->PySys_Audit("cpython.run_file", "O", file) == 0 &&
        py->PyDict_SetItemString(r->globals, "__file__", file) == 0 &&
        (!cached || py->PyDict_SetItemString(r->globals, "__cached__", py->none) == 0)) {
        f = open_script(r, path, &status);
        if (f)
            result = eval_file(r, f, file, path);
    }
    if (status == 0)
        status = exit_status_of(r, result);
    /* As in CPython, before atexit functions and the last threads run. */
    if (f && (py->PyDict_DelItemString(r->globals, "__file__") != 0 ||
              (cached && py->PyDict_DelItemString(r->globals, "__cached__") != 0)))
        py->PyErr_Clear();
    py->Py_DecRef(file);
    return status;
}

/* Makes a directory or zip file with a __main__ sys.path[0].  Returns 1, 0 if `name` is something
 * else, -1 with an exception set. */
static int add_archive(const struct run *r, const char *name)
{
    const struct pyrt_api *py = r->py;
    struct pyobj *path = py->PyUnicode_DecodeFSDefault(name), *importer, *sys_path;
    int rc = -1;

    if (!path)
        return -1;
    importer = py->PyImport_GetImporter(path);
    sys_path = py->PySys_GetObject("path");
    if (importer == py->none)
        rc = 0;
    else if (importer && sys_path && py->PyList_Insert(sys_path, 0, path) == 0)
        rc = 1;
    py->Py_DecRef(importer);
    py->Py_DecRef(path);
    return rc;
}

/* The script's path is absolute in __file__, also when the program changes the directory. */
static char *absolute_path(const char *path)
{
    char *dir = *path == '/' ? NULL : getcwd(NULL, 0), *out = NULL;

    if (!dir)
        return strdup(path);
    out = malloc(strlen(dir) + strlen(path) + 2);
    if (out)
        sprintf(out, "%s/%s", dir, path);
    free(dir);
    return out;
}

static int run_script(const struct run *r, const struct pyrt_command *command, const char *path)
{
    int archive = add_archive(r, path);

    if (archive < 0 || set_argv(r, command, !archive && !safe_path(r)) < 0)
        return exit_status_of(r, NULL);
    return archive ? run_module(r, "__main__", 0) : run_file(r, path);
}

/* Frees the path.  The program may end its thread by pthread_exit. */
static int run_owned_script(const struct run *r, const struct pyrt_command *command, char *path)
{
    int status;

    pthread_cleanup_push(free, path);
    status = run_script(r, command, path);
    pthread_cleanup_pop(1);
    return status;
}

int pyrt_program_run(const struct pyrt_api *py, const struct pyrt_program *program,
                     const struct pyrt_command *command, int index)
{
    struct run r = {.py = py, .index = index};
    struct pyobj *main_module = py->PyImport_AddModule("__main__");

    if (!main_module)
        return exit_status_of(&r, NULL);
    r.globals = py->PyModule_GetDict(main_module);
    if (program->kind == PYRT_SCRIPT) {
        char *path = absolute_path(program->what);

        return path ? run_owned_script(&r, command, path)
                    : exit_status_of(&r, py->PyErr_NoMemory());
    }
    if (set_argv(&r, command, !safe_path(&r)) < 0)
        return exit_status_of(&r, NULL);
    return program->kind == PYRT_CODE ? run_code(&r, program->what)
                                      : run_module(&r, program->what, 1);
}

void pyrt_program_join_threads(const struct pyrt_api *py)
{
    struct pyobj *modules = py->PySys_GetObject("modules"), *threading, *result;

    /* A program that never imported threading has no such threads. */
    threading = modules ? py->PyDict_GetItemString(modules, "threading") : NULL;
    if (!threading)
        return;
    py->Py_IncRef(threading);
    result = py->PyObject_CallMethod(threading, "_shutdown", NULL);
    if (!result)
        py->PyErr_Clear();
    py->Py_DecRef(result);
    py->Py_DecRef(threading);
}
