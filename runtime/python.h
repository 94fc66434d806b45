/* runtime/ runs stock CPython in contexts, on the public header <extisolate.h> alone: finds an
 * installation, runs one program per context, each on its own thread, and returns how it ended.
 * Callers are cli/ and tests/runtime/; the headers but process.h, scratch.h, importable.h and this
 * one are for runtime/ itself.  Functions return 0 or a negative exti_code and fill a caller-owned
 * exti_error, as those of the library do. */
#ifndef RUNTIME_PYTHON_H
#define RUNTIME_PYTHON_H

#include <stddef.h>

#include <extisolate.h>

/* ---- installations (install.c) ---- */

#define PYRT_MINOR_FIRST 9
/* The last one that was tested.  Later ones are not refused. */
#define PYRT_MINOR_TESTED 15

/* What an interpreter says about itself. */
struct pyrt_install {
    int minor;         /* of CPython 3 */
    int free_threaded; /* built without the GIL: abiflags "t" */
    int debug;         /* built with Py_DEBUG: abiflags "d" */
    char *version;     /* "3.11.2" */
    char *executable;  /* sys.executable; in a venv the venv's */
    char *libpython;   /* its shared library, absolute */
};

/* Runs `exe` (looked up on PATH if it has no slash; NULL: python3) to ask what it is, and finds its
 * shared libpython.  Returns EXTI_E_ARG, with a message that says what would do, for an interpreter
 * that cannot run in contexts.  The strings are the caller's, for pyrt_install_free. */
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

enum pyrt_setting_kind { PYRT_SET_INT, PYRT_SET_TEXT, PYRT_SET_LIST };

/* An option of the interpreter, by the name of a member of PyConfig, or utf8_mode or allocator of
 * PyPreConfig.  sys.argv is the program's. */
struct pyrt_setting {
    const char *name;
    enum pyrt_setting_kind kind;
    long number;             /* PYRT_SET_INT; not negative */
    const char *text;        /* PYRT_SET_TEXT; in the locale's encoding, as those of the list */
    const char *const *list; /* PYRT_SET_LIST */
    size_t count;
};

struct pyrt_opts {
    const struct pyrt_install *python;
    const struct pyrt_program *program;
    const struct pyrt_setting *settings; /* what is not here is as in the stock interpreter */
    size_t setting_count;
    const char *dir;           /* the context's directory */
    const char *importable;    /* of pyrt_importable_write, or NULL */
    int index, count;          /* this context's number, and how many there are */
    uint32_t ctx_flags;        /* EXTI_CTX_* */
    enum exti_closure closure; /* these five as in struct exti_ctx_opts */
    const struct exti_rule *rules;
    size_t rule_count;
    const char *const *quirk_files;
    size_t quirk_file_count;
    int paced; /* pyrt_go opens the context and lets the program begin */
    int prove; /* prove isolation between the end of the program and finalisation */
    /* Called on the context's thread if the context cannot have a directory of its own; or NULL. */
    void (*shares_directory)(const struct exti_error *why);
};

struct pyrt_result {
    int started; /* if not, `error` says why and `status` is 1 */
    int status;  /* exit status, 0..255 */
    int sig;     /* the signal that ended the program, as ^C does, with `status` 128 + sig; or 0 */
    int proven;  /* `proof` is valid; if a proof was asked for and failed, `error` says why */
    struct exti_proof proof;
    char *findings; /* of the proof, a line each, or NULL; freed by pyrt_close */
    struct exti_error error;
};

/* A context has a thread of its own, which initialises the interpreter, runs the program and
 * finalises the interpreter.  All pointers in `opts` must stay valid until pyrt_join returns. */
struct pyrt_context;
int pyrt_start(struct pyrt_context **out, const struct pyrt_opts *opts, struct exti_error *err);
/* Whether it pays to unload contexts whose programs have ended while so many others run: all that
 * is loaded is looked at whenever a library is opened. */
int pyrt_unloads(int count);
/* Opens `count` contexts that were started as paced, some of which may be NULL, and lets their
 * programs run.  They begin as processors are free, or after some time, and are opened a few ahead.
 * A signal that ends one whose turn has not come ends those that are not open yet: they do not
 * start, and their results say `started`.  Returns when the last has begun; the contexts then stay
 * mapped when they are closed, as the process is about to end.  If `results` is not NULL, those
 * that have ended by then have been joined, each into its result, and closed, and are NULL. */
void pyrt_go(struct pyrt_context **contexts, struct pyrt_result *results, int count);
/* Waits for the end of the program.  Call it once. */
void pyrt_join(struct pyrt_context *c, struct pyrt_result *out);
/* Closes the library's context, and frees CPython's memory unless code that may use it stays
 * mapped.  Returns how many files stay mapped; `report`, or NULL, gets the reasons, as by
 * exti_ctx_close_report.  Call it after pyrt_join, on a thread that was never in the context.  NULL
 * ok. */
size_t pyrt_close(struct pyrt_context *c, exti_report_fn report, void *user);

/* ---- the process (ending.c) ---- */

/* Ends the process by the signal's default action.  Async-signal-safe. */
void pyrt_end_by(int sig);

#endif
