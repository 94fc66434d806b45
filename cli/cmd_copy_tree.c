#include "cli/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args/choice.h"
#include "cli/args/option.h"
#include "cli/args/purpose.h"
#include "cli/args/quirks.h"
#include "cli/find/abi.h"
#include "cli/find/contexts.h"
#include "cli/find/format.h"
#include "cli/os/memory.h"
#include "cli/os/path.h"
#include "cli/os/system.h"
#include "cli/output/message.h"
#include "cli/output/progress.h"
#include "cli/tree/tree.h"
#include "cli/tree/tree_copy.h"
#include "cli/tree/tree_python.h"
#include "cli/tree/tree_report.h"

static const char help[] =
    "usage: extisolate copy-tree [OPTION]... DIR CTXDIR\n"
    "\n"
    "Copies the native extension modules in DIR and below it (a virtual environment or\n"
    "site-packages folder), and the libraries they need, into the context directories CTXDIR/0,\n"
    "CTXDIR/1 and so on, for 'extisolate run --dir CTXDIR'.  Libraries in DIR that no module\n"
    "needs, but that modules may open at run time, are copied too unless they are shared.\n"
    "Modules for another Python or machine are skipped.\n"
    "\n"
    "Up-to-date copies stay, so a second call copies only what has changed since.  To finish a\n"
    "call that was interrupted, repeat it.\n"
    "\n"
    "options:\n"
    "  --contexts N      make N contexts; default 1\n"
    "  --libpython PATH  copy this libpython into new contexts.  Default: that of the Python in\n"
    "                    DIR (DIR/bin/python) or in the virtual environment around DIR, else\n"
    "                    found as 'copy' does\n"
    "  --name NAME       name new contexts NAME-0, NAME-1...: letters, digits, - and _, at most\n"
    "                    24\n"
    "  --rename          give the API symbols private names, for programs that export the API\n"
    "                    themselves\n" CLI_PURPOSE_HELP("contexts") CLI_CHOICE_HELP
    "  --jobs N          copy with N threads; default: one per processor\n"
    "  --sync            write each copy to the disk before it counts (fsync)\n"
    "  --why             print why libraries are isolated or shared even if nothing was copied\n"
    "  --json            print what was done as JSON, with all reasons\n"
    "  -h, --help        show this\n"
    "\n"
    "examples:\n"
    "  extisolate copy-tree --contexts 4 venv ctx\n"
    "  extisolate run --python venv/bin/python --contexts 4 --dir ctx app.py\n"
    "  extisolate copy-tree --json /usr/lib/python3/dist-packages ctx | jq .refused\n"
    "\n"
    "Prints how much was copied, how many libraries are isolated and shared, what was skipped\n"
    "and, if anything was copied, which libraries those are and why.  Exit status: 0 done, 1 a\n"
    "file was refused or could not be looked at (all else is done), 2 wrong usage.\n";

struct request {
    const char *dir, *ctxdir, *name;
    char *libpython;    /* owned */
    struct cli_abi abi; /* of libpython */
    int contexts, jobs;
    bool json, why;
    uint32_t flags;
    struct cli_choice choice;

    struct cli_tree tree;
    struct cli_tree_report report;
    const char **paths;      /* owned; modules, then libraries */
    size_t *results;         /* owned; the index of each in the report */
    size_t count, libraries; /* of paths */
};

static int parse_copy_tree(struct request *r, int argc, char **argv)
{
    const char *libpython = NULL;
    const struct cli_option options[] = {
        {.name = "contexts", .count = &r->contexts},
        {.name = "libpython", .file = &libpython},
        {.name = "name", .text = &r->name},
        {.name = "rename", .bits = &r->flags, .bit = EXTI_CTX_RENAME},
        {.name = "for", .take = cli_take_purpose, .to = &r->flags},
        CLI_CHOICE_OPTIONS(&r->choice),
        {.name = "jobs", .count = &r->jobs},
        {.name = "sync", .bits = &r->flags, .bit = EXTI_CTX_SYNC},
        {.name = "why", .flag = &r->why},
        {.name = "json", .flag = &r->json},
        {0}};
    int status = cli_parse("copy-tree", argc, argv, options, help);

    if (status != CLI_OK)
        return status;
    if (r->name != NULL && cli_check_name("copy-tree", r->name, CLI_TREE_NAME_MAX) != CLI_OK)
        return CLI_USAGE;
    if (argc - optind != 2)
        return cli_usage("copy-tree", argc - optind < 2 ? "needs DIR and CTXDIR"
                                                        : "takes one DIR and one CTXDIR");
    if (libpython != NULL)
        r->libpython = cli_copy_text(libpython);
    r->dir = argv[optind];
    r->ctxdir = argv[optind + 1];
    return CLI_OK;
}

/* ---- checks before anything is made ---------------------------------------------------------- */

static int check_folders(const struct request *r)
{
    struct cli_stat st;

    if (!cli_stat(r->dir, &st))
        return cli_fail(r->dir, "cannot access it: %s", strerror(errno));
    if (!st.is_dir) {
        cli_fail(r->dir, "is a file, not a directory");
        cli_hint("'extisolate copy FILE... CTXDIR' copies single files");
        return CLI_FAILED;
    }
    if (cli_stat(r->ctxdir, &st) && !st.is_dir)
        return cli_fail(r->ctxdir, "is a file, not a directory");
    if (cli_is_context(r->ctxdir)) {
        cli_fail(r->ctxdir, "is itself a context directory, not a directory for several");
        cli_hint("use another CTXDIR: the contexts are made in CTXDIR/0, CTXDIR/1 and so on");
        return CLI_FAILED;
    }
    return CLI_OK;
}

/* Takes the libpython that existing contexts have, or finds one. */
static int choose_libpython(struct request *r)
{
    struct exti_error err;

    for (size_t k = 0; r->libpython == NULL && k < r->report.context_count; k++) {
        struct exti_dir *d = NULL;
        struct exti_copy_info info = {.size = sizeof info};

        int rc = cli_context_api(r->report.contexts[k].dir, &d, &info, &err);
        if (rc == 0)
            r->libpython = cli_copy_text(info.source);
        exti_dir_free(d);
        /* A context that is not there yet or is damaged names none. */
        if ((rc == EXTI_E_IO && err.os_error != ENOENT) || rc == EXTI_E_NOMEM)
            return cli_error(&err, r->report.contexts[k].dir);
    }
    if (r->libpython == NULL)
        return cli_tree_libpython(&r->tree, r->dir, &r->libpython, &r->abi);
    if (cli_libpython_abi(r->libpython, &r->abi, &err) != 0)
        return cli_error(&err, r->libpython);
    return CLI_OK;
}

static int name_contexts(struct request *r)
{
    struct cli_tree_report *t = &r->report;

    t->context_count = (size_t)r->contexts;
    t->contexts = cli_zeroed(t->context_count, sizeof *t->contexts);
    for (size_t k = 0; k < t->context_count; k++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", k);
        t->contexts[k].dir = cli_join(r->ctxdir, number);
    }
    return CLI_OK;
}

/* An extension for another CPython version would load, and crash when it first uses a struct. */
static bool skip_version(const struct request *r, struct cli_tree_result *t)
{
    const struct cli_abi *abi = &t->file->abi;
    char message[160];

    if (cli_abi_fits(abi, &r->abi))
        return false;
    snprintf(message, sizeof message, "is built for CPython %d.%d%s, the contexts have %d.%d%s",
             abi->major, abi->minor, abi->flags, r->abi.major, r->abi.minor, r->abi.flags);
    t->skipped = cli_copy_text(message);
    return true;
}

static int choose_files(struct request *r)
{
    struct cli_tree_report *t = &r->report;
    const size_t n = r->tree.count;

    t->result_count = n;
    t->results = cli_zeroed(n + 1, sizeof *t->results);
    r->paths = cli_zeroed(n + 1, sizeof *r->paths);
    r->results = cli_zeroed(n + 1, sizeof *r->results);
    for (size_t i = 0; i < n; i++) {
        struct cli_tree_file *f = &r->tree.files[i];
        struct cli_tree_result *one = &t->results[i];
        one->file = f;
        one->copies = cli_zeroed(t->context_count, sizeof *one->copies);
        one->error = f->error;
        f->error = NULL;
        if (one->error != NULL || f->skipped != NULL || skip_version(r, one))
            continue;
        r->libraries += f->kind == CLI_TREE_LIBRARY;
        r->results[r->count] = i;
        r->paths[r->count++] = f->path;
    }
    return CLI_OK;
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static bool is_for_target(const struct exti_image *im, const struct exti_image *api)
{
    struct exti_image_info x = {.size = sizeof x}, y = {.size = sizeof y};

    return exti_image_info(im, &x) == 0 && exti_image_info(api, &y) == 0 && cli_same_target(&x, &y);
}

/* Turns refusals of files for another machine into skips. */
static void skip_foreign(struct request *r)
{
    struct exti_image *api = NULL, *im = NULL;

    for (size_t i = 0; i < r->report.result_count; i++) {
        struct cli_tree_result *t = &r->report.results[i];
        if (t->error == NULL || t->error->code != EXTI_E_UNSUPPORTED)
            continue;
        if (api == NULL && !cli_worked(exti_inspect(r->libpython, &api, NULL)))
            return;
        if (cli_worked(exti_inspect(t->file->path, &im, NULL)) && !is_for_target(im, api)) {
            t->skipped = cli_copy_text(t->error->message);
            free(t->error);
            t->error = NULL;
        }
        exti_image_free(im);
        im = NULL;
    }
    exti_image_free(api);
}

/* Whether the context's error is that of a file, which is reported there. */
static bool is_of_file(const struct request *r, const struct cli_tree_context *c)
{
    for (size_t i = 0; i < r->report.result_count; i++) {
        const struct cli_tree_result *t = &r->report.results[i];
        if (t->error != NULL && strcmp(t->error->message, c->err.message) == 0)
            return true;
    }
    return false;
}

static int report_outcome(struct request *r)
{
    struct cli_tree_report *t = &r->report;
    size_t made = 0;
    int status = r->tree.unread != 0 ? CLI_FAILED : CLI_OK;

    for (size_t k = 0; k < t->context_count; k++) {
        struct cli_tree_context *c = &t->contexts[k];
        made += c->made;
        if (c->err.code != 0 && is_of_file(r, c))
            c->err = (struct exti_error){0};
        else if (c->err.code != 0)
            status = cli_error(&c->err, c->dir);
    }
    skip_foreign(r);
    /* Finding the reasons takes a look at every library. */
    t->why = made != 0 || r->json || r->why;
    if (cli_tree_report_libraries(t) != CLI_OK)
        status = CLI_FAILED;
    if (r->json && cli_tree_report_json(t, r->libpython) != CLI_OK)
        status = CLI_FAILED;
    if (!r->json)
        cli_tree_report_print(t);
    return cli_tree_report_refused(t) != 0 ? CLI_FAILED : status;
}

static int prepare(struct request *r)
{
    struct exti_quirks *q = NULL;
    struct exti_error err;
    int status = check_folders(r);

    if (status == CLI_OK)
        status = cli_open_quirks(&r->choice.quirks, &q, &err);
    exti_quirks_free(q);
    if (status == CLI_OK)
        status = name_contexts(r);
    if (status != CLI_OK)
        return status;
    struct cli_progress *bar = cli_progress_start("looking", 0);
    status = cli_tree_find(&r->tree, r->dir, r->ctxdir, bar);
    cli_progress_end(bar);
    if (status == CLI_OK && r->tree.count > 0)
        status = choose_libpython(r);
    return status == CLI_OK ? choose_files(r) : status;
}

static int copy_tree(struct request *r)
{
    int status = prepare(r);

    if (status != CLI_OK)
        return status;
    if (r->count > 0) {
        const struct cli_tree_job job = {.report = &r->report,
                                         .name = r->name,
                                         .libpython = r->libpython,
                                         .choice = &r->choice,
                                         .flags = r->flags,
                                         .threads = (size_t)r->jobs,
                                         .paths = r->paths,
                                         .results = r->results,
                                         .count = r->count,
                                         .libraries = r->libraries};

        if (!cli_make_dir(r->ctxdir, r->flags & EXTI_CTX_SYNC))
            return cli_fail(r->ctxdir, "cannot create the directory: %s", strerror(errno));
        cli_tree_copy(&job);
    }
    return report_outcome(r);
}

static int release(struct request *r, int status)
{
    for (size_t k = 0; k < r->report.context_count; k++) {
        struct cli_tree_context *c = r->report.contexts != NULL ? &r->report.contexts[k] : NULL;
        struct exti_error err;
        if (c != NULL && c->ctx != NULL && exti_ctx_close(c->ctx, &err) != 0)
            status = cli_error(&err, c->dir);
        if (c != NULL)
            free(c->dir);
    }
    for (size_t i = 0; r->report.results != NULL && i < r->report.result_count; i++) {
        struct cli_tree_result *t = &r->report.results[i];
        free(t->copies);
        free(t->error);
        free(t->skipped);
        free(t->shared);
    }
    free(r->report.contexts);
    free(r->report.results);
    json_decref(r->report.libraries);
    free(r->paths);
    free(r->results);
    free(r->libpython);
    cli_tree_free(&r->tree);
    cli_choice_free(&r->choice);
    return status;
}

static int cmd_copy_tree(int argc, char **argv)
{
    struct request r = {.contexts = 1, .flags = EXTI_CTX_FOR_LOADING};
    int status = parse_copy_tree(&r, argc, argv);

    r.report.dir = r.ctxdir;
    if (r.jobs == 0)
        r.jobs = (int)cli_processors();
    if (status == CLI_OK)
        status = copy_tree(&r);
    status = release(&r, status);
    return status;
}

const struct cli_command cli_command_copy_tree = {
    "copy-tree", "copy all extension modules in a venv or folder, for several contexts",
    cmd_copy_tree};
