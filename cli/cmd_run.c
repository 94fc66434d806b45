#include "cli/command.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/args/choice.h"
#include "cli/args/option.h"
#include "cli/find/quirk_env.h"
#include "cli/os/memory.h"
#include "cli/output/json.h"
#include "cli/output/message.h"
#include "cli/output/text.h"
#include "runtime/importable.h"
#include "runtime/process.h"
#include "runtime/python.h"
#include "runtime/room.h"
#include "runtime/scratch.h"

static const char help[] =
    "usage: extisolate run [OPTION]... SCRIPT | -c CODE | -m MODULE [ARG]...\n"
    "\n"
    "Runs one program in several CPythons of one process, in parallel.  Each has its own\n"
    "libpython and extension modules, its own GIL and its own thread.  SCRIPT (a file, directory\n"
    "or zip file), CODE, MODULE and ARGs mean what they mean to python3.  In the program, 'import\n"
    "extisolate' gives the context's number, extisolate.index, and how many there are,\n"
    "extisolate.count.\n"
    "\n"
    "options:\n"
    "  --contexts N   run N contexts; default 1\n"
    "  --python EXE   use the libpython, sys.path and so on of this interpreter, which may be\n"
    "                 that of a virtual environment; default python3.  CPython 3.9 to 3.15;\n"
    "                 a later one is run with a note that it was not tested\n"
    "  --dir CTXDIR   keep the copies for the next run, context K's in CTXDIR/K.  Default: a\n"
    "                 private directory in TMPDIR or /tmp that is removed afterwards\n"
    "  --prove        afterwards check each context's references, print a table on stderr, and\n"
    "                 fail if a reference leads out of its context\n"
    "  --json         with --prove: print the result as JSON on stdout, after the program's\n"
    "                 output\n"
    "  --rename       give API symbols private names even if this process does not export "
    "them\n" CLI_CHOICE_HELP "  -h, --help     show this\n"
    "\n"
    "Contexts share the process: its file descriptors; where the system allows no other, its\n"
    "working directory, environment and locale.  Signal handlers and timers are each context's\n"
    "own: ^C and kill reach all contexts.  On Linux each ends alone, by os._exit and exec too.\n"
    "With several contexts, OPENBLAS_NUM_THREADS and OMP_NUM_THREADS are set to each context's\n"
    "share of the processors unless they are set already.\n"
    "\n"
    "examples:\n"
    "  extisolate run --contexts 4 app.py --its --own arguments\n"
    "  extisolate run --contexts 2 -c 'import extisolate, numpy; print(extisolate.index)'\n"
    "  extisolate run --contexts 2 --prove --python venv/bin/python -m package.module\n"
    "\n"
    "Exit status: that of the first context whose program failed, else 0; also 1 when a context\n"
    "did not start or --prove found a leak; 2 wrong usage.  If ^C ends all programs, the process\n"
    "dies by SIGINT, as python3 does.\n";

struct request {
    struct pyrt_program program;
    const char *python, *dir;
    int contexts;
    bool prove, json, rename;
    struct cli_choice choice;
};

/* What one run owns. */
struct session {
    struct pyrt_install python;
    struct pyrt_scratch *scratch;
    struct pyrt_context **contexts;
    struct pyrt_result *results;
    char **dirs;
    char *importable; /* the folder that children import from */
};

/* ---- options --------------------------------------------------------------------------------- */

/* Takes the program from argv[optind] on unless `given`, the value of -c or -m, is it. */
static int parse_program(struct request *r, int argc, char **argv, const char *given)
{
    if (given != NULL) {
        r->program.what = given;
    } else {
        if (optind == argc)
            return cli_usage("run", "nothing to run; give a SCRIPT, -c CODE or -m MODULE");
        r->program.what = argv[optind++];
        if (*r->program.what == '\0')
            return cli_usage("run", "the SCRIPT's name is empty");
        if (strcmp(r->program.what, "-") == 0)
            return cli_usage("run", "contexts cannot share a program on standard input; give a "
                                    "SCRIPT, -c CODE or -m MODULE");
        if (access(r->program.what, R_OK) != 0) {
            cli_fail(r->program.what, "cannot be read: %s", strerror(errno));
            return CLI_USAGE;
        }
    }
    r->program.argv = argv + optind;
    r->program.argc = argc - optind;
    return CLI_OK;
}

static int parse_run(struct request *r, int argc, char **argv)
{
    const char *code = NULL, *module = NULL;
    const struct cli_option options[] = {{.name = "contexts", .count = &r->contexts},
                                         {.name = "python", .file = &r->python},
                                         {.name = "dir", .file = &r->dir},
                                         {.name = "prove", .flag = &r->prove},
                                         {.name = "json", .flag = &r->json},
                                         {.name = "rename", .flag = &r->rename},
                                         CLI_CHOICE_OPTIONS(&r->choice),
                                         /* As with python3, what follows is the program's. */
                                         {.letter = 'c', .text = &code, .last = true},
                                         {.letter = 'm', .text = &module, .last = true},
                                         {0}};
    int status = cli_parse("run", argc, argv, options, help);

    if (status != CLI_OK)
        return status;
    if (r->json && !r->prove)
        return cli_usage("run", "--json prints the result of --prove; add --prove");
    if (code != NULL)
        r->program.kind = PYRT_CODE;
    if (module != NULL)
        r->program.kind = PYRT_MODULE;
    return parse_program(r, argc, argv, code != NULL ? code : module);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Prints an error with "context K" and the faulty file, if any, as its file. */
static int context_error(int index, const struct exti_error *error)
{
    struct exti_error err = *error;

    snprintf(err.file, sizeof err.file, "context %d%s%.450s", index, *error->file ? ": " : "",
             error->file);
    return cli_error(&err, NULL);
}

/* The private directory, with what children import. */
static int make_scratch(struct session *s, struct exti_error *err)
{
    int rc = pyrt_scratch_new(&s->scratch, err);

    return rc < 0 ? rc : pyrt_importable_write(&s->importable, pyrt_scratch_path(s->scratch), err);
}

/* Contexts' directories, by absolute paths: programs may share the process's current directory, and
 * change it before later contexts are opened.  Links are left to the library, which asks whose they
 * are. */
static int name_dirs(struct session *s, int contexts, const char *base)
{
    char *here = *base == '/' ? cli_copy_text("") : getcwd(NULL, 0);
    int status = CLI_OK;

    if (here == NULL)
        return cli_fail(base, "%s", strerror(errno));
    for (int i = 0; i < contexts && status == CLI_OK; i++) {
        size_t room = strlen(here) + strlen(base) + 17;
        s->dirs[i] = cli_alloc(room);
        if (s->dirs[i] == NULL)
            status = cli_fail(NULL, "out of memory");
        else
            snprintf(s->dirs[i], room, "%s%s%s/%d", here, *here ? "/" : "", base, i);
    }
    free(here);
    return status;
}

static int make_dirs(struct session *s, const struct request *r)
{
    const char *base = r->dir;
    struct exti_error err;
    bool made = make_scratch(s, &err) == 0;

    if (base == NULL) {
        if (!made)
            return cli_error(&err, NULL);
        base = pyrt_scratch_path(s->scratch);
    } else if (mkdir(base, 0755) != 0 && errno != EEXIST) {
        return cli_fail(base, "cannot create the directory: %s", strerror(errno));
    } else if (!made) {
        cli_note("processes that the program starts cannot import extisolate: %s%s%s", err.file,
                 *err.file ? ": " : "", err.message);
    }
    return name_dirs(s, r->contexts, base);
}

/* One of several contexts has no directory of its own.  The others have none either. */
static void note_directory(const struct exti_error *why)
{
    static atomic_flag noted = ATOMIC_FLAG_INIT;

    if (!atomic_flag_test_and_set(&noted))
        cli_note("the contexts share one current directory and umask: %s", why->message);
}

/* Starts all contexts, then waits for all.  A context that does not start has its error in
 * results. */
static void run_contexts(struct session *s, const struct request *r)
{
    /* Else they stay mapped, as the process ends with them, so unloading would only take time.
     * pyrt_close frees what a proof has found, which is printed at the end. */
    const bool unload = pyrt_unloads(r->contexts) && !r->prove;

    for (int i = 0; i < r->contexts; i++) {
        struct pyrt_opts o = {
            .python = &s->python,
            .program = &r->program,
            .dir = s->dirs[i],
            .importable = s->importable,
            .index = i,
            .count = r->contexts,
            .ctx_flags = (unload ? EXTI_CTX_CLOSE_IDLE : EXTI_CTX_KEEP) |
                         (r->rename ? EXTI_CTX_RENAME : 0) |
                         (r->dir == NULL ? EXTI_CTX_ONE_SHOT : 0) | r->choice.flags,
            .paced = 1,
            .prove = r->prove,
            .shares_directory = r->contexts > 1 ? note_directory : NULL,
            .closure = r->choice.closure,
            .rules = r->choice.rules,
            .rule_count = r->choice.count,
            .quirk_files = r->choice.quirks.items,
            .quirk_file_count = r->choice.quirks.count,
        };
        s->results[i].status = 1;
        pyrt_start(&s->contexts[i], &o, &s->results[i].error);
    }
    pyrt_go(s->contexts, unload ? s->results : NULL, r->contexts);
    for (int i = 0; i < r->contexts; i++) {
        if (s->contexts[i] != NULL)
            pyrt_join(s->contexts[i], &s->results[i]);
        if (!s->results[i].started)
            context_error(i, &s->results[i].error);
    }
}

/* ---- what came out --------------------------------------------------------------------------- */

static void print_proof(const struct request *r, const struct session *s)
{
    fputs("context  modules  references  leaks  captured\n", stderr);
    for (int i = 0; i < r->contexts; i++) {
        const struct pyrt_result *res = &s->results[i];
        if (res->proven)
            fprintf(stderr, "%7d  %7zu  %10zu  %s%5zu%s  %8zu\n", i, res->proof.modules,
                    res->proof.references,
                    cli_style(stderr, res->proof.leaks ? CLI_RED : CLI_GREEN), res->proof.leaks,
                    cli_style(stderr, CLI_PLAIN), res->proof.captured);
        else if (res->started)
            context_error(i, &res->error);
        if (res->findings != NULL)
            fputs(res->findings, stderr);
    }
}

static json_t *result_json(int index, const struct pyrt_result *res)
{
    json_t *o = json_pack("{s:i, s:b, s:i, s:b}", "index", index, "started", res->started, "status",
                          res->status, "proven", res->proven);

    if (res->proven)
        json_object_set_new(
            o, "proof",
            json_pack("{s:I, s:I, s:I, s:I}", "modules", (json_int_t)res->proof.modules,
                      "references", (json_int_t)res->proof.references, "leaks",
                      (json_int_t)res->proof.leaks, "captured", (json_int_t)res->proof.captured));
    else if (*res->error.message != '\0')
        json_object_set_new(o, "error", cli_json_error(&res->error, NULL));
    if (res->findings != NULL && *res->findings != '\0')
        json_object_set_new(o, "findings", cli_json_text(res->findings));
    return o;
}

static int report_results(const struct request *r, const struct session *s)
{
    int status = CLI_OK;

    for (int i = 0; i < r->contexts && status == CLI_OK; i++)
        status = s->results[i].status;
    if (!r->prove)
        return status;
    for (int i = 0; i < r->contexts && status == CLI_OK; i++)
        if (!s->results[i].proven || s->results[i].proof.leaks > 0)
            status = CLI_FAILED;
    if (r->json) {
        json_t *all = json_array();
        for (int i = 0; i < r->contexts; i++)
            json_array_append_new(all, result_json(i, &s->results[i]));
        if (cli_json_print(all) != CLI_OK && status == CLI_OK)
            status = CLI_FAILED;
    } else {
        print_proof(r, s);
    }
    return status;
}

static int check_room(int contexts)
{
    const long mappings = pyrt_room_for_packages(contexts);
    struct exti_error err;

    if (pyrt_room_check(contexts, &err) < 0)
        return cli_error(&err, NULL);
    if (mappings != 0)
        cli_note(
            "if each of %d contexts imports packages like numpy, the process needs more mappings "
            "than it may have; sysctl vm.max_map_count=%ld makes room",
            contexts, mappings);
    return CLI_OK;
}

static int run_session(struct session *s, const struct request *r)
{
    size_t n = (size_t)r->contexts;
    struct exti_error err;

    if (check_room(r->contexts) != CLI_OK)
        return CLI_FAILED;
    s->contexts = cli_zeroed(n, sizeof *s->contexts);
    s->results = cli_zeroed(n, sizeof *s->results);
    s->dirs = cli_zeroed(n, sizeof *s->dirs);
    if (s->contexts == NULL || s->results == NULL || s->dirs == NULL)
        return cli_fail(NULL, "out of memory");
    if (pyrt_install_find(&s->python, r->python, &err) < 0) {
        cli_error(&err, NULL);
        cli_hint("--python takes the path of a CPython, 3.%d or later", PYRT_MINOR_FIRST);
        return CLI_FAILED;
    }
    if (s->python.minor > PYRT_MINOR_TESTED)
        cli_note("CPython %s is newer than 3.%d, the newest that was tested in contexts",
                 s->python.version, PYRT_MINOR_TESTED);
    /* Before pyrt_process_setup, which keeps variables that are set already. */
    if (cli_set_quirk_environment(&r->choice.quirks, s->python.executable) != CLI_OK)
        return CLI_FAILED;
    pyrt_process_setup(r->contexts);
    if (make_dirs(s, r) != CLI_OK)
        return CLI_FAILED;
    run_contexts(s, r);
    return report_results(r, s);
}

static void release_session(struct session *s, const struct request *r)
{
    for (int i = 0; i < r->contexts; i++) {
        if (s->contexts != NULL)
            pyrt_close(s->contexts[i], NULL, NULL);
        if (s->dirs != NULL)
            free(s->dirs[i]);
    }
    free(s->importable);
    pyrt_scratch_free(s->scratch);
    pyrt_install_free(&s->python);
    free(s->contexts);
    free(s->results);
    free(s->dirs);
}

/* A program may overwrite argv to set its process title (setproctitle), while contexts that start
 * later still read it. */
static char **keep_arguments(int argc, char **argv)
{
    char **own = cli_zeroed((size_t)argc + 1, sizeof *own);

    for (int i = 0; own != NULL && i < argc; i++)
        if ((own[i] = cli_copy_text(argv[i])) == NULL) {
            while (i > 0)
                free(own[--i]);
            free(own);
            own = NULL;
        }
    return own;
}

/* The signal that ended all programs that have begun, as ^C does; 0: not all, or not the same.
 * Interpreters do not start when ^C comes meanwhile. */
static int ending_signal(const struct session *s, const struct request *r)
{
    int sig = 0;

    for (int i = 0; i < r->contexts; i++) {
        if (s->results == NULL)
            return 0;
        if (!s->results[i].started)
            continue;
        if (s->results[i].sig == 0 || (sig != 0 && s->results[i].sig != sig))
            return 0;
        sig = s->results[i].sig;
    }
    return sig;
}

static int parse_and_run(int argc, char **argv)
{
    struct request r = {.contexts = 1};
    struct session s = {0};
    int status = parse_run(&r, argc, argv), sig = 0;

    if (status == CLI_OK) {
        status = run_session(&s, &r);
        sig = ending_signal(&s, &r);
        release_session(&s, &r);
    }
    cli_choice_free(&r.choice);
    /* As python3 does, so that a shell's loop stops. */
    if (sig != 0) {
        fflush(NULL);
        pyrt_end_by(sig);
    }
    return status;
}

static int cmd_run(int argc, char **argv)
{
    char **own = keep_arguments(argc, argv);
    int status;

    if (own == NULL)
        return cli_fail(NULL, "out of memory");
    status = parse_and_run(argc, own);
    for (int i = 0; i < argc; i++)
        free(own[i]);
    free(own);
    return status;
}

const struct cli_command cli_command_run = {
    "run", "run a program in several CPythons of one process, in parallel", cmd_run};
