#include "cli/command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/args/choice.h"
#include "cli/args/option.h"
#include "cli/args/purpose.h"
#include "cli/args/quirks.h"
#include "cli/find/abi.h"
#include "cli/find/contexts.h"
#include "cli/find/find_libpython.h"
#include "cli/find/format.h"
#include "cli/os/memory.h"
#include "cli/os/path.h"
#include "cli/os/system.h"
#include "cli/output/json.h"
#include "cli/output/message.h"
#include "cli/output/progress.h"
#include "cli/output/text.h"
#include "cli/report/macho_shared.h"

static const char help[] =
    "usage: extisolate copy [OPTION]... FILE... CTXDIR\n"
    "\n"
    "Makes a private copy of each FILE, an extension module or a library that one needs, in the\n"
    "context directory CTXDIR.  A new CTXDIR first gets a copy of libpython, and all copies in\n"
    "CTXDIR are bound to that one only.  The FILEs never change.  An up-to-date copy stays, a\n"
    "stale one is replaced.\n"
    "\n"
    "options:\n"
    "  --libpython PATH  copy this libpython, or other API library, into a new CTXDIR.  Default:\n"
    "                    found by the version in FILE's name: in the installation that contains\n"
    "                    FILE, by asking python3 on PATH, in the linker's folders (Windows:\n"
    "                    python, then py on PATH, the folders of PATH).  Required for Mach-O\n"
    "                    files\n"
    "  --name NAME       name a new context: letters, digits, - and _, at most 32\n"
    "  --rename          give the API symbols private names, for programs that export the API\n"
    "                    themselves\n" CLI_PURPOSE_HELP("programs") CLI_CHOICE_HELP
    "  --sync            write each copy to the disk before it counts (fsync)\n"
    "  --json            print where the copies are as JSON\n"
    "  -h, --help        show this\n"
    "\n"
    "examples:\n"
    "  extisolate copy foo.cpython-311-x86_64-linux-gnu.so ctx\n"
    "  extisolate copy --libpython /opt/python/lib/libpython3.12.so.1.0 foo.abi3.so ctx\n"
    "  extisolate copy --json numpy/core/*.so ctx | jq -r '.copies[].copy'\n"
    "  extisolate copy -- -odd-name.so ctx\n"
    "\n"
    "Prints 'FILE -> COPY' for each.  Exit status: 0 done, 1 a FILE failed (the others are done),\n"
    "2 wrong usage.\n";

#define NAME_MAX_CHARS 32
#define ATTEMPTS 100

struct copy {
    const char *dir, *name;
    char *libpython;     /* owned; NULL: that of CTXDIR */
    const char *foreign; /* the first FILE that is Mach-O, or NULL */
    char **files;
    size_t count;
    bool is_new, json;
    bool ready; /* to open the directory */
    bool gone;  /* another process removed the directory after it was opened */
    int tries;  /* how often it may still be opened again */
    uint32_t flags;
    struct cli_choice choice;
    struct cli_abi abi; /* of the API library, as its name states it */
    json_t *errors;
    struct cli_progress *bar;
};

/* Reports that `file` failed, on stderr and in JSON. */
static int failed(struct copy *c, const struct exti_error *err, const char *file)
{
    json_array_append_new(c->errors, cli_json_error(err, file));
    return cli_error(err, file);
}

static void note_error(struct copy *c, const char *file, int code, const char *message)
{
    struct exti_error err = {.code = code, .offset = EXTI_NO_OFFSET};

    snprintf(err.message, sizeof err.message, "%s", message);
    json_array_append_new(c->errors, cli_json_error(&err, file));
}

static int refuse_file(struct copy *c, const char *file, const char *message)
{
    note_error(c, file, EXTI_E_UNSUPPORTED, message);
    return cli_fail(file, "%s", message);
}

static int take_arguments(int argc, char **argv, struct copy *c, const char *libpython)
{
    if (argc - optind == 0)
        return cli_usage("copy", "missing FILE and CTXDIR");
    if (argc - optind == 1)
        return cli_usage("copy", "needs FILE and CTXDIR, got only '%s'", argv[optind]);
    if (c->name != NULL && cli_check_name("copy", c->name, NAME_MAX_CHARS) != CLI_OK)
        return CLI_USAGE;
    c->files = argv + optind;
    c->count = (size_t)(argc - optind - 1);
    c->dir = argv[argc - 1];
    if (libpython != NULL)
        c->libpython = cli_copy_text(libpython);
    return CLI_OK;
}

static int parse_copy(int argc, char **argv, struct copy *c)
{
    const char *libpython = NULL;
    const struct cli_option options[] = {
        {.name = "libpython", .file = &libpython},
        {.name = "name", .text = &c->name},
        {.name = "rename", .bits = &c->flags, .bit = EXTI_CTX_RENAME},
        {.name = "for", .take = cli_take_purpose, .to = &c->flags},
        CLI_CHOICE_OPTIONS(&c->choice),
        {.name = "sync", .bits = &c->flags, .bit = EXTI_CTX_SYNC},
        {.name = "json", .flag = &c->json},
        {0}};
    int status = cli_parse("copy", argc, argv, options, help);

    return status == CLI_OK ? take_arguments(argc, argv, c, libpython) : status;
}

/* An extension for another CPython version would load, and crash when it first uses a struct. */
static int check_version(struct copy *c, const char *file)
{
    struct cli_abi abi = cli_abi_of(file);
    char message[256];

    if (cli_abi_fits(&abi, &c->abi))
        return CLI_OK;
    snprintf(message, sizeof message,
             "is built for CPython %d.%d%s, but the context's libpython is %d.%d%s", abi.major,
             abi.minor, abi.flags, c->abi.major, c->abi.minor, c->abi.flags);
    refuse_file(c, file, message);
    cli_hint("copy it into another CTXDIR; if its libpython is not found, add --libpython PATH");
    return CLI_FAILED;
}

/* Drops the files that cannot be read, and adds the others to the search for libpython.  Each file
 * is read once for both. */
static int check_files(struct copy *c, struct cli_libpython_search *search)
{
    size_t kept = 0;
    int status = CLI_OK;

    for (size_t i = 0; i < c->count; i++) {
        struct exti_error err;
        struct exti_image *im = NULL;

        if (exti_inspect(c->files[i], &im, &err) != 0) {
            status = failed(c, &err, c->files[i]);
            continue;
        }
        if (c->foreign == NULL && cli_is_macho(im))
            c->foreign = c->files[i];
        c->files[kept++] = c->files[i];
        cli_libpython_for(search, c->files[i], im);
    }
    c->count = kept;
    return status;
}

/* Takes the libpython that was named, or the one that is found, and its version. */
static int choose_libpython(struct copy *c, struct cli_libpython_search *search)
{
    struct exti_error err;

    if (c->libpython != NULL)
        return cli_libpython_abi(c->libpython, &c->abi, &err) == 0 ? CLI_OK
                                                                   : failed(c, &err, c->libpython);
    if (c->foreign != NULL) {
        refuse_file(c, c->foreign, "is a Mach-O file, whose libpython is not searched for");
        cli_hint("name it with --libpython PATH: libpython3.11.dylib, or the Python of a "
                 "Python.framework");
        return CLI_FAILED;
    }
    if (cli_libpython_find(search, NULL, &c->libpython, &c->abi) == CLI_OK)
        return CLI_OK;
    note_error(c, c->files[0], EXTI_E_ARG, "found no libpython for it");
    return CLI_FAILED;
}

/* Checks everything that can be checked before a new directory is made. */
static int prepare_new(struct copy *c)
{
    struct cli_stat st;

    if (cli_stat(c->dir, &st) && !st.is_dir) {
        refuse_file(c, c->dir, "is a file, not a directory");
        cli_hint("the last argument is the context directory: FILE... CTXDIR");
        return CLI_FAILED;
    }
    struct cli_libpython_search *search = cli_libpython_search();
    int status = check_files(c, search);
    c->ready = c->count > 0 && choose_libpython(c, search) == CLI_OK;
    cli_libpython_search_free(search);
    return c->count > 0 && !c->ready ? CLI_FAILED : status;
}

/* Reads which API library an existing directory has. */
static int prepare_old(struct copy *c)
{
    struct exti_dir *d = NULL;
    struct exti_copy_info info = {.size = sizeof info};

    struct exti_error err;
    int rc = cli_context_api(c->dir, &d, &info, &err);

    if (rc == 0)
        c->abi = cli_abi_of_libpython(info.source);
    exti_dir_free(d);
    c->is_new = rc == EXTI_E_IO && err.os_error == ENOENT;
    if (c->is_new)
        return prepare_new(c);
    if (rc == EXTI_E_IO || rc == EXTI_E_NOMEM) /* a damaged one is made anew */
        return failed(c, &err, c->dir);
    c->ready = true;
    return CLI_OK;
}

static void note_copy(const struct copy *c, json_t *copies, const char *file, const char *path)
{
    struct cli_shared shared = cli_shared_of(file, path);

    json_array_append_new(copies, json_pack("{s:o, s:o, s:O, s:O}", "source", cli_json_text(file),
                                            "copy", cli_json_text(path), "flat", shared.flat,
                                            "carried_over", shared.carried));
    if (!c->json) {
        cli_put(stdout, file);
        fputs(" -> ", stdout);
        cli_put(stdout, path);
        putchar('\n');
        cli_shared_print(&shared);
    }
    cli_shared_free(&shared);
}

/* Prints the API library before the first copy, unless that is the library's own. */
static int print_api(struct copy *c, const struct exti_ctx *ctx, const char *first)
{
    struct exti_dir *d = NULL;
    struct exti_copy_info info = {.size = sizeof info};
    struct exti_error err;
    int rc = 0;

    if (c->is_new && !c->json)
        rc = cli_context_api(exti_ctx_dir(ctx), &d, &info, &err);
    if (rc != 0) {
        cli_error(&err, exti_ctx_dir(ctx));
    } else if (d != NULL && strcmp(info.copy, first) != 0) {
        cli_put(stdout, c->libpython);
        fputs(" -> ", stdout);
        cli_put(stdout, info.copy);
        putchar('\n');
    }
    c->is_new = false;
    exti_dir_free(d);
    return rc == 0 ? CLI_OK : CLI_FAILED;
}

/* Removes each FILE from the list when it is done. */
static void copy_all(struct copy *c, struct exti_ctx *ctx, json_t *copies, int *status)
{
    for (size_t i = 0; c->count > 0 && !c->gone; i++) {
        struct exti_error err;
        const char *file = *c->files, *path = NULL;

        cli_progress_step(c->bar, i, file);
        int right = check_version(c, file);
        int rc = right == CLI_OK ? exti_copy(ctx, file, &path, &err) : 0;
        cli_progress_hide(c->bar);
        if (right != CLI_OK) {
            *status = right;
        } else if (rc != 0 && err.code == EXTI_E_CHECK && err.os_error == ENOENT &&
                   c->tries-- > 0) {
            c->gone = true;
        } else if (rc != 0) {
            *status = failed(c, &err, file);
        } else {
            if (print_api(c, ctx, path) != CLI_OK)
                *status = CLI_FAILED;
            note_copy(c, copies, file, path);
        }
        if (!c->gone) {
            c->files++;
            c->count--;
        }
        cli_progress_show(c->bar);
    }
}

static int print_json(struct copy *c, const struct exti_ctx *ctx, json_t *copies)
{
    struct exti_dir *d = NULL;
    struct exti_copy_info info = {.size = sizeof info};
    json_t *context = json_null(), *api = json_null();
    struct exti_error err;
    int status = CLI_OK;

    if (ctx != NULL) {
        int rc = cli_context_api(exti_ctx_dir(ctx), &d, &info, &err);
        if (rc != 0 && err.os_error != ENOENT)
            status = failed(c, &err, exti_ctx_dir(ctx));
        if (rc == 0)
            api = json_pack("{s:o, s:o}", "source", cli_json_text(info.source), "copy",
                            cli_json_text(info.copy));
        context = json_pack("{s:o, s:o, s:b}", "dir", cli_json_text(exti_ctx_dir(ctx)), "name",
                            cli_json_text(exti_ctx_name(ctx)), "renamed",
                            d != NULL && exti_dir_renamed(d));
    }
    exti_dir_free(d);
    const int printed =
        cli_json_print(json_pack("{s:o, s:o, s:O, s:O}", "context", context, "api_library", api,
                                 "copies", copies, "errors", c->errors));
    return printed != CLI_OK ? printed : status;
}

static void open_and_copy(struct copy *c, struct exti_ctx **ctx, json_t *copies, int *status)
{
    struct exti_error err;
    struct exti_ctx_opts opts = {.size = sizeof opts,
                                 .dir = c->dir,
                                 .name = c->name,
                                 .api_library = c->libpython,
                                 .flags = c->flags | EXTI_CTX_COPY_ONLY | EXTI_CTX_DROP_UNUSED};

    cli_choice_apply(&c->choice, &opts);
    c->bar = cli_progress_start("copying", c->count);
    cli_progress_step(c->bar, 0, c->dir);
    int rc = exti_ctx_open(ctx, &opts, &err);
    cli_progress_hide(c->bar);
    if (rc != 0)
        *status = failed(c, &err, c->dir);
    cli_progress_show(c->bar);
    if (rc == 0)
        copy_all(c, *ctx, copies, status);
    cli_progress_end(c->bar);
}

/* Copies the FILEs that are left; *ctx stays open. */
static int pass(struct copy *c, struct exti_ctx **ctx, json_t *copies)
{
    c->gone = false;
    c->ready = false;
    c->is_new = !cli_is_context(c->dir);
    int status = c->is_new ? prepare_new(c) : prepare_old(c);
    if (c->ready && c->count > 0)
        open_and_copy(c, ctx, copies, &status);
    return status;
}

/* "python3.dll", or its name in other builds. */
static bool is_python3(const char *file)
{
    static const char *const names[] = {"python3.dll", "python3_d.dll", "python3t.dll",
                                        "python3t_d.dll"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(cli_base_name(file), names[i]) == 0)
            return true;
    return false;
}

/* The other FILEs may need the context's copy of python3.dll. */
static void put_python3_first(struct copy *c)
{
    size_t first = 0;

    for (size_t i = 0; i < c->count; i++) {
        char *file = c->files[i];

        if (!is_python3(file))
            continue;
        memmove(&c->files[first + 1], &c->files[first], (i - first) * sizeof *c->files);
        c->files[first++] = file;
    }
}

/* Opens the rules only to report their errors, before anything is made. */
static int check_quirks(struct copy *c)
{
    struct exti_error err;
    struct exti_quirks *q = NULL;
    int status = cli_open_quirks(&c->choice.quirks, &q, &err);

    if (status != CLI_OK)
        json_array_append_new(c->errors, cli_json_error(&err, NULL));
    exti_quirks_free(q);
    return status;
}

/* Opens the directory again when another process has removed it meanwhile, as `copy` does if all
 * its FILEs fail. */
static int pass_until_done(struct copy *c, struct exti_ctx **ctx, json_t *copies)
{
    int status = CLI_OK;

    put_python3_first(c);
    do {
        if (*ctx != NULL)
            exti_ctx_close(*ctx, NULL);
        *ctx = NULL;
        if (pass(c, ctx, copies) != CLI_OK)
            status = CLI_FAILED;
    } while (c->gone);
    return status;
}

static int copy_and_report(struct copy *c)
{
    struct exti_error err;
    struct exti_ctx *ctx = NULL;
    json_t *copies = json_array();
    int status = check_quirks(c);

    if (status == CLI_OK)
        status = pass_until_done(c, &ctx, copies);
    if (c->json && print_json(c, ctx, copies) != CLI_OK)
        status = CLI_FAILED;
    json_decref(copies);
    if (ctx != NULL && exti_ctx_close(ctx, &err) != 0)
        status = cli_error(&err, c->dir);
    return status;
}

static int cmd_copy(int argc, char **argv)
{
    struct copy c = {.errors = json_array(), .tries = ATTEMPTS};
    int status = parse_copy(argc, argv, &c);

    if (status == CLI_OK)
        status = copy_and_report(&c);
    json_decref(c.errors);
    free(c.libpython);
    cli_choice_free(&c.choice);
    return status;
}

const struct cli_command cli_command_copy = {
    "copy", "copy extension modules into a context directory", cmd_copy};
