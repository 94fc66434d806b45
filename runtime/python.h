/* Stock CPython contexts on top of the loader's public API: find an installation, run one program
 * in a context on a thread of its own, learn how it ended.  Calls take a caller-owned exti_error as
 * the loader's do and return 0 or a negative exti_code. */
#ifndef RUNTIME_PYTHON_H
#define RUNTIME_PYTHON_H

#include <stddef.h>

#include <extisolate.h>

/* ---- installations (install.c) ---- */

#define PYRT_MINOR_FIRST 9
#define PYRT_MINOR_LAST 14

/* An interpreter as it describes itself. */
struct pyrt_install {
    int minor;         /* of CPython 3 */
    int free_threaded; /* built without the GIL: abiflags "t" */
    int debug;         /* built with Py_DEBUG: abiflags "d" */
    char *version;     /* "3.11.2" */
    char *executable;  /* sys.executable; in a venv the venv's */
    char *libpython;   /* its shared library, absolute */
};

/* Runs `exe` (NULL: python3; without a slash it is looked up on PATH) to ask what it is, and finds
 * its shared libpython.  An interpreter that cannot serve is EXTI_E_ARG with a message that
 * names what would. */
int pyrt_install_find(struct pyrt_install *out, const char *exe, struct exti_error *err);
void pyrt_install_free(struct pyrt_install *in);

/* ---- contexts (context.c) ---- */

enum pyrt_program_kind { PYRT_SCRIPT, PYRT_CODE, PYRT_MODULE };

struct pyrt_program {
    enum pyrt_program_kind kind;
    const char *what;  /* a path (file, directory or zip), source text, or a module's name */
    char *const *argv; /* the program's arguments, not its name */
    int argc;
};

struct pyrt_opts {
    const struct pyrt_install *python;
    const struct pyrt_program *program;
    const char *dir;           /* the context's directory */
    int index, count;          /* this context's number and how many there are */
    uint32_t ctx_flags;        /* EXTI_CTX_* */
    enum exti_closure closure; /* these five as in struct exti_ctx_opts */
    const struct exti_rule *rules;
    size_t rule_count;
    const char *const *quirk_files;
    size_t quirk_file_count;
    int prove; /* prove isolation between the program's end and finalisation */
};

struct pyrt_result {
    int started; /* else `error` says why not and `status` is 1 */
    int status;  /* exit status, 0..255 */
    int proven;  /* `proof` is filled in; if it could not be made, `error` says why */
    struct exti_proof proof;
    char *leaks; /* one line per leak, or NULL; gone with the context */
    struct exti_error error;
};

/* One context.  The program runs on the context's own thread, where the interpreter is initialised
 * and finalised too.  All pointers in `opts` must outlive pyrt_join. */
struct pyrt_context;
int pyrt_start(struct pyrt_context **out, const struct pyrt_opts *opts, struct exti_error *err);
/* Waits for the program's end; once. */
void pyrt_join(struct pyrt_context *c, struct pyrt_result *out);
/* Closes the loader's context, and frees CPython's memory unless code that may use it stays
 * mapped.  As exti_ctx_close_report: the result is how many of its files do, and `report`, if there
 * is one, is told why.  After pyrt_join, on a thread that was never in the context.  NULL ok. */
size_t pyrt_close(struct pyrt_context *c, exti_report_fn report, void *user);

#endif
