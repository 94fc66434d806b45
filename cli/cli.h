/* What the commands share: exit codes, messages, options, colour, JSON, progress.  Everything the
 * user gave is printed through cli_put or a cli_ call that does so, never raw: file names may hold
 * control characters. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <extisolate.h>

#define CLI_OK 0
#define CLI_FAILED 1
#define CLI_USAGE 2 /* nothing was done */

#if defined(__MINGW_PRINTF_FORMAT)
#define CLI_PRINTF(fmt, args) __attribute__((format(__MINGW_PRINTF_FORMAT, fmt, args)))
#elif defined(__GNUC__)
#define CLI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CLI_PRINTF(fmt, args)
#endif

/* The commands: argv[0] is the command's name.  The result is the exit code. */
int cmd_copy(int argc, char **argv);
int cmd_copy_tree(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_clean(int argc, char **argv);
int cmd_quirks(int argc, char **argv);

/* ---- messages (message.c) --------------------------------------------------------------------- */

/* "extisolate: FILE: offset 0x..: message" on stderr, then a line that says what to do next where
 * that is known.  `file` names the fault's file when the error does not.  Returns CLI_FAILED. */
int cli_error(const struct exti_error *err, const char *file);

/* "extisolate: FILE: message" on stderr; `file` may be NULL.  Returns CLI_FAILED. */
int cli_fail(const char *file, const char *fmt, ...) CLI_PRINTF(2, 3);

/* The line after an error that says what to do next. */
void cli_hint(const char *fmt, ...) CLI_PRINTF(1, 2);

/* "extisolate COMMAND: message" and where the help is, on stderr.  Returns CLI_USAGE. */
int cli_usage(const char *command, const char *fmt, ...) CLI_PRINTF(2, 3);

/* Decodes one UTF-8 character at `s`: its length, or 0 if it is not UTF-8. */
size_t cli_utf8(const char *s, uint32_t *code);

/* Writes `text` with control characters, line breaks and bytes that are not UTF-8 as \n, \xHH. */
void cli_put(FILE *f, const char *text);

/* As cli_put, into a new string to free; NULL when memory is out. */
char *cli_safe(const char *text);

enum cli_style { CLI_PLAIN, CLI_BOLD, CLI_DIM, CLI_RED, CLI_GREEN, CLI_YELLOW };

/* The sequence that switches to a style, "" unless `f` is a terminal that wants colour. */
const char *cli_style(FILE *f, enum cli_style style);

/* ---- options (option.c) ----------------------------------------------------------------------- */

/* getopt_long with this program's messages.  `shorts` begins with ":" ("+:" to stop at the first
 * argument).  Returns the option, -1 at the end, or '?' when a usage error has been printed. */
int cli_getopt(const char *command, int argc, char **argv, const char *shorts,
               const struct option *longs);

/* The one of `names` (NULL-ended) that `word` was probably meant to be, or NULL. */
const char *cli_nearest(const char *word, const char *const *names);

/* CLI_OK, or the usage error for the first empty argument from argv[from] on. */
int cli_no_empty(const char *command, int argc, char **argv, int from);

/* The values of an option that may be given several times. */
struct cli_values {
    const char **items; /* owned, the strings the command line's */
    size_t count;
};
/* CLI_OK, or the error that has been printed: usage, when the value is empty. */
int cli_add_value(struct cli_values *v, const char *command, const char *option, const char *value);

/* The number of contexts that an option asks for. */
#define CLI_CONTEXTS_MAX 10000
bool cli_parse_count(const char *text, int *out);

/* ---- quirks (cmd_quirks.c) --------------------------------------------------------------------- */

/* The library's rules and those of the --quirks options; CLI_FAILED with a message. */
int cli_open_quirks(const struct cli_values *files, struct exti_quirks **out,
                    struct exti_error *err);

/* Sets the environment as rules want it that apply to files in the folders of the interpreter's sys.path or
 * below, unless it is set (quirk_env.c; POSIX). */
int cli_set_quirk_environment(const struct cli_values *files, const char *python);

/* ---- which libraries are shared (choice.c) ----------------------------------------------------- */

/* --closure, --share, --isolate and --quirks, which several commands have. */
enum { CLI_CLOSURE = 512, CLI_SHARE, CLI_ISOLATE, CLI_QUIRKS };
#define CLI_CHOICE_OPTIONS                                                                         \
    {"closure", required_argument, NULL, CLI_CLOSURE},                                             \
        {"share", required_argument, NULL, CLI_SHARE},                                             \
        {"quirks", required_argument, NULL, CLI_QUIRKS},                                           \
    {                                                                                              \
        "isolate", required_argument, NULL, CLI_ISOLATE                                            \
    }
#define CLI_CHOICE_HELP                                                                            \
    "  --closure WHICH   which of the libraries that modules need a new context gets copies of:\n" \
    "                    all but a base set (all, when not given; the man page lists it), those\n" \
    "                    by which libpython is reached (api), or none\n"                           \
    "  --share GLOB      share the libraries of such a SONAME, file name or, with a slash, path\n" \
    "  --isolate GLOB    copy them; of several that match the last counts\n"                       \
    "  --quirks FILE     take the rules of FILE too; 'extisolate help quirks' says more\n"

struct cli_choice {
    enum exti_closure closure;
    struct exti_rule *rules; /* the globs are the command line's */
    size_t count;
    struct cli_values quirks;
};

/* Takes one of the four: CLI_OK, or what a failure has printed. */
int cli_choice_option(struct cli_choice *c, const char *command, int option, const char *value);
void cli_choice_apply(const struct cli_choice *c, struct exti_ctx_opts *opts);
void cli_choice_free(struct cli_choice *c);

/* ---- paths (path.c) ---------------------------------------------------------------------------- */

const char *cli_base_name(const char *path);
/* To be freed, NULL when memory is out; "." for a plain name. */
char *cli_folder_of(const char *path);
char *cli_join(const char *dir, const char *name);

/* ---- JSON (json.c) ---------------------------------------------------------------------------- */

/* A JSON string; bytes that are not UTF-8 become \xHH as text.  null for NULL. */
json_t *cli_json_text(const char *text);

/* {"code","file","offset","os_error","message"} */
json_t *cli_json_error(const struct exti_error *err, const char *file);

/* Prints `value` and a line break on stdout and gives it up.  Returns CLI_OK or CLI_FAILED. */
int cli_json_print(json_t *value);

/* ---- progress (progress.c) -------------------------------------------------------------------- */

/* A bar on stderr, painted by a thread of its own from one second on, if stderr is a terminal.
 * `total` 0: the amount is not known.  One at a time.  NULL when there is nothing to paint; every
 * call takes that. */
struct cli_progress;
struct cli_progress *cli_progress_start(const char *what, size_t total);
void cli_progress_step(struct cli_progress *p, size_t done, const char *name);
/* Takes the bar away while something else is printed. */
void cli_progress_hide(struct cli_progress *p);
void cli_progress_show(struct cli_progress *p);
void cli_progress_end(struct cli_progress *p);

/* ---- context directories (contexts.c) --------------------------------------------------------- */

/* Whether `dir` has a context's manifest. */
#define CLI_MANIFEST "manifest.json" /* in each context directory */
bool cli_is_context(const char *dir);

/* Calls `each` with `dir` if it is a context directory, else with every context directory in it, in
 * natural order (2 before 10).  The highest exit code wins; CLI_FAILED with a message if there is
 * none. */
int cli_each_context(const char *dir, int (*each)(void *user, const char *dir), void *user);

/* ---- Mach-O copies (macho.c) ------------------------------------------------------------------- */

bool cli_is_macho(const struct exti_image *im);

/* What a copy has that its context does not keep apart: JSON arrays of names, empty for ELF. */
struct cli_shared {
    json_t *flat;    /* symbols that are still looked up in every library */
    json_t *carried; /* architectures that were carried over as they are */
};
struct cli_shared cli_shared_of(const char *original, const char *copy);
void cli_shared_print(const struct cli_shared *s); /* a line each on stdout, if there is any */
void cli_shared_free(struct cli_shared *s);

/* ---- PE files (pe.c) --------------------------------------------------------------------------- */

bool cli_is_pe(const struct exti_image *im);

/* Names of the API library, NULL-ended; NULL: Python's. */
void cli_pe_print_libraries(const struct exti_image *im, const char *const *api);
void cli_pe_print_layout(const struct exti_image_info *info);
void cli_pe_print_flags(const struct exti_image *im, const struct exti_image_info *info);
json_t *cli_pe_json(const struct exti_image *im, const char *const *api);

/* How often `im` has the name of an API library as text, where it may be looked up at run time: JSON
 * objects of name and offset. */
json_t *cli_pe_mentions(const struct exti_image *im, const char *const *api);
json_t *cli_pe_mentions_in(const char *path, const char *const *api); /* none unless it is PE */

/* "  name      ", and a whole line of that kind (cmd_inspect.c). */
void cli_label(const char *name);
void cli_line(const char *name, const char *text, const char *none);

/* ---- hazards (hazards.c) ------------------------------------------------------------------------ */

/* What is said and counted of hazards for: 0 contexts, any number. */
void cli_hazards_print(const struct exti_image *im, int contexts); /* inspect's lines */
json_t *cli_hazards_json(const struct exti_image *im, int contexts);

/* The hazards of many files, by kind. */
struct cli_hazards;
struct cli_hazards *cli_hazards_new(void);    /* NULL when memory is out */
void cli_hazards_free(struct cli_hazards *h); /* NULL ok */
void cli_hazards_add(struct cli_hazards *h, const char *file, const struct exti_image *im);
void cli_hazards_print_all(const struct cli_hazards *h, int contexts);
json_t *cli_hazards_all_json(const struct cli_hazards *h, int contexts);

/* Notes of what matters to the copies of `dir` alone, a line each, or appended to `notes`. */
void cli_hazards_note(const struct cli_hazards *h, const char *dir, json_t *notes);

/* Adds the libraries of a folder and those below it, links left out.  CLI_OK, or CLI_FAILED with
 * messages when some could not be read; *count is how many there are. */
int cli_hazards_add_tree(struct cli_hazards *h, const char *dir, size_t *count);

/* ---- finding the API library (abi.c, find_libpython.c) ---------------------------------------- */

/* The CPython that a file was built for, as its name tells. */
struct cli_abi {
    int major, minor;  /* 0: any (abi3, or no tag) */
    char flags[8];     /* "t", "d", ... */
    char platform[64]; /* "x86_64-linux-gnu", or "" */
};
/* "foo.cpython-313t-x86_64-linux-gnu.so", "foo.cp313t-win_amd64.pyd" */
struct cli_abi cli_abi_of(const char *path);
bool cli_is_abi3(const char *path); /* "foo.abi3.so" */

/* The version that a library's name, "libpython3.13t.so.1.0" or "python313t.dll", tells; major 0 if it
 * is none such. */
struct cli_abi cli_abi_of_libpython(const char *path);

/* Whether a file built for `want` can use `have`; what is not known fits. */
bool cli_abi_fits(const struct cli_abi *want, const struct cli_abi *have);

/* Finds the libpython that all `files`, ELF or PE that exti_inspect can read, can use.  *out is a path
 * to free.  `python`, or NULL, is an interpreter that is asked first.  On failure it has printed what was
 * looked for and what to do, and returns CLI_FAILED. */
int cli_find_libpython(char *const *files, size_t count, const char *python, char **out);

/* ---- the libraries of a folder (tree.c) --------------------------------------------------------- */

enum cli_tree_kind {
    CLI_TREE_EXTENSION, /* a module of Python's */
    CLI_TREE_LIBRARY    /* what a module may need, or open as it runs */
};
struct cli_tree_file {
    char *path; /* owned */
    char *real; /* owned; the same without links */
    enum cli_tree_kind kind;
    bool abi3; /* any Python's */
    struct cli_abi abi;
    char *skipped; /* owned; why it is none for this, or NULL */
};
struct cli_tree {
    struct cli_tree_file *files; /* owned; extensions before libraries, each by path */
    size_t count;
    size_t unread; /* folders that could not be looked into; that has been told */
};

/* Finds what has a library's name in `dir` and below it: each file once, by whatever links, and nothing
 * in context directories or in the folder `except`, which may be NULL. */
int cli_tree_find(struct cli_tree *t, const char *dir, const char *except,
                  struct cli_progress *bar);
void cli_tree_free(struct cli_tree *t);

#endif
