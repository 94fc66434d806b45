#include "runtime/program.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "runtime/uncaught.h"

/* What the functions below share. */
struct run {
    const struct pyrt_api *py;
    union pyrt_config *config;
    int index;
    struct pyobj *globals; /* of __main__, borrowed */
};

static const wchar_t *wide(const struct run *r, const char *name)
{
    return *pyrt_wstr(r->config, r->py->build, name);
}

static struct pyrt_wlist *argv_list(const struct run *r)
{
    return (struct pyrt_wlist *)(void *)(r->config->bytes +
                                         pyrt_field_offset(r->py->build, "argv"));
}

/* Releases `result` and returns the exit status; NULL stands for an exception that is set. */
static int exit_status_of(const struct run *r, struct pyobj *result)
{
    if (!result)
        return pyrt_uncaught(r->py, r->index);
    r->py->Py_DecRef(result);
    return 0;
}

/* Whether -P or PYTHONSAFEPATH (3.11) keeps the program's directory off sys.path. */
static int safe_path(const struct run *r)
{
    const int *flag = pyrt_int(r->config, r->py->build, "safe_path");

    return flag && *flag;
}

static int run_module(const struct run *r, const wchar_t *name, int set_argv0)
{
    const struct pyrt_api *py = r->py;
    struct pyobj *runpy, *main_fn = NULL, *module = NULL, *result = NULL;

    runpy = py->PyImport_ImportModule("runpy");
    if (!runpy)
        return exit_status_of(r, NULL);
    main_fn = py->PyObject_GetAttrString(runpy, "_run_module_as_main");
    if (main_fn)
        module = py->PyUnicode_FromWideChar(name, -1);
    if (module && py->PySys_Audit("cpython.run_module", "O", module) == 0)
        result = py->PyObject_CallFunction(main_fn, "Oi", module, set_argv0);
    py->Py_DecRef(module);
    py->Py_DecRef(main_fn);
    py->Py_DecRef(runpy);
    return exit_status_of(r, result);
}

/* From 3.14 on, -c accepts indented code. */
static struct pyobj *dedented(const struct run *r, struct pyobj *source)
{
    const struct pyrt_api *py = r->py;
    const char *s = r->py->PyUnicode_AsUTF8AndSize(source, NULL);
    struct pyobj *textwrap, *result;

    if (!s)
        return NULL;
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
    result = py->build.minor == 13 ? py->PyObject_CallMethod(linecache, "_register_code", "sss",
                                                             "<string>", source, "<string>")
                                   : py->PyObject_CallMethod(linecache, "_register_code", "Oss",
                                                             code, source, "<string>");
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

static int run_code(const struct run *r, const wchar_t *source)
{
    const struct pyrt_api *py = r->py;
    struct pyobj *given, *text = NULL, *result = NULL;

    given = py->PyUnicode_FromWideChar(source, -1);
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

static int run_file(const struct run *r, const wchar_t *name)
{
    const struct pyrt_api *py = r->py;
    struct pyobj *file = py->PyUnicode_FromWideChar(name, -1), *result = NULL;
    char *path = py->Py_EncodeLocale(name, NULL);
    int status = 0;
    FILE *f = NULL;

    if (file && path && py->PySys_Audit("cpython.run_file", "O", file) == 0 &&
        py->PyDict_SetItemString(r->globals, "__file__", file) == 0 &&
        py->PyDict_SetItemString(r->globals, "__cached__", py->none) == 0) {
        f = open_script(r, path, &status);
        if (f)
            result = eval_file(r, f, file, path);
    }
    if (status == 0)
        status = exit_status_of(r, result);
    /* As in CPython, before atexit functions and the last threads run. */
    if (f && (py->PyDict_DelItemString(r->globals, "__file__") != 0 ||
              py->PyDict_DelItemString(r->globals, "__cached__") != 0))
        py->PyErr_Clear();
    py->PyMem_Free(path);
    py->Py_DecRef(file);
    return status;
}

/* Makes a directory or zip file with a __main__ sys.path[0].  Returns 1, 0 if `name` is something
 * else, -1 with an exception set. */
static int add_archive(const struct run *r, const wchar_t *name)
{
    const struct pyrt_api *py = r->py;
    struct pyobj *path = py->PyUnicode_FromWideChar(name, -1), *importer, *sys_path;
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

int pyrt_program_run(const struct pyrt_api *py, union pyrt_config *config, int index)
{
    struct run r = {.py = py, .config = config, .index = index};
    const wchar_t *file = *pyrt_wstr(config, py->build, "run_filename");
    const struct pyrt_wlist *args = argv_list(&r);
    struct pyobj *main_module = py->PyImport_AddModule("__main__");
    int archive = 0;

    if (!main_module)
        return exit_status_of(&r, NULL);
    r.globals = py->PyModule_GetDict(main_module);
    if (file)
        archive = add_archive(&r, file);
    if (archive < 0)
        return exit_status_of(&r, NULL);
    /* Puts the program's directory, which depends on the kind of argv[0], first on sys.path. */
    if (!archive && !safe_path(&r))
        py->PySys_SetArgvEx((int)args->length, args->items, 1);
    if (wide(&r, "run_command"))
        return run_code(&r, wide(&r, "run_command"));
    if (wide(&r, "run_module"))
        return run_module(&r, wide(&r, "run_module"), 1);
    return archive ? run_module(&r, L"__main__", 0) : run_file(&r, file);
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
