#include "cli/command.h"

#include <stdlib.h>
#include <string.h>

#include "cli/args/option.h"
#include "cli/find/contexts.h"
#include "cli/find/format.h"
#include "cli/os/memory.h"
#include "cli/os/path.h"
#include "cli/output/json.h"
#include "cli/output/message.h"
#include "cli/output/text.h"

static const char help[] =
    "usage: extisolate rewrite [OPTION]... FILE [-o OUT]\n"
    "\n"
    "Changes what a shared library (ELF, Mach-O, PE) is called, needs and searches.  The result "
    "is\n"
    "written to a new file, checked against FILE, and only then put in FILE's place, or OUT's; a\n"
    "failure changes nothing.  A file may be rewritten any number of times: an edit lays out anew\n"
    "what the one before has appended.\n"
    "\n"
    "options:\n"
    "  -o, --output OUT          write there and leave FILE as it is\n"
    "  --id NAME                 the SONAME (ELF), install name (Mach-O) or DLL name (PE)\n"
    "  --add-needed LIB          need LIB too, after all others; nothing if it is needed already\n"
    "  --add-needed-first LIB    need LIB too, before all others\n"
    "  --remove-needed LIB       do not need LIB\n"
    "  --replace-needed OLD=NEW  need NEW in the place of OLD\n"
    "  --allow-absent            LIB or OLD need not be there\n"
    "  --set-path PATH           the search path (RUNPATH, LC_RPATH), entries separated by ':';\n"
    "                            '' removes it\n"
    "  --prepend-path PATH       entries to search before the others\n"
    "  --rename-symbol OLD=NEW   rename a dynamic symbol, defined or only used; may be absent\n"
    "  --sync                    return once the result is safe from a power failure\n"
    "  --json                    print the result as JSON\n"
    "  -h, --help                show this\n"
    "\n"
    "Edits of needed libraries apply in the order given.  The imports of a PE file can be "
    "replaced,\n"
    "but not added or removed, and it has no search path.\n"
    "\n"
    "examples:\n"
    "  extisolate rewrite --id libfoo.so.2 --set-path '$ORIGIN/lib' libfoo.so\n"
    "  extisolate rewrite --replace-needed libssl.so.1.1=libssl.so.3 _ssl.so -o _ssl3.so\n"
    "  extisolate rewrite --replace-needed python311.dll=mypython.dll foo.pyd -o my.pyd\n"
    "\n"
    "Exit status: 0 done, 1 failed (nothing was written), 2 wrong usage.\n";

struct rewrite {
    struct exti_rewrite_opts opts;
    struct exti_needed *needed; /* owned, as are the texts */
    struct exti_rename *renames;
    const char *file, *out;
    bool json;
};

static int check_not_empty(const char *command, const char *option, const char *value)
{
    if (*value != '\0')
        return CLI_OK;
    return cli_usage(command, "--%s is empty: is a shell variable unset?", option);
}

static void add_edit(struct rewrite *r, const char *from, const char *to,
                     enum exti_needed_where where)
{
    size_t n = r->opts.needed_count++;

    r->needed = cli_resize(r->needed, (n + 1) * sizeof *r->needed);
    r->needed[n] = (struct exti_needed){from != NULL ? cli_copy_text(from) : NULL,
                                        to != NULL ? cli_copy_text(to) : NULL, where};
    r->opts.needed = r->needed;
}

static int take_added(void *to, const char *command, const char *value)
{
    int status = check_not_empty(command, "add-needed", value);

    if (status == CLI_OK)
        add_edit(to, NULL, value, EXTI_NEEDED_LAST);
    return status;
}

static int take_added_first(void *to, const char *command, const char *value)
{
    int status = check_not_empty(command, "add-needed-first", value);

    if (status == CLI_OK)
        add_edit(to, NULL, value, EXTI_NEEDED_FIRST);
    return status;
}

static int take_removed(void *to, const char *command, const char *value)
{
    int status = check_not_empty(command, "remove-needed", value);

    if (status == CLI_OK)
        add_edit(to, value, NULL, EXTI_NEEDED_LAST);
    return status;
}

/* Splits OLD=NEW; the caller frees *old and *new. */
static int split_pair(const char *command, const char *option, const char *value, char **old,
                      char **new)
{
    const char *sign = strchr(value, '=');

    if (sign == NULL || sign == value || sign[1] == '\0')
        return cli_usage(command, "--%s takes OLD=NEW, not '%s'", option, value);
    *new = cli_copy_text(sign + 1);
    *old = cli_copy_text(value);
    (*old)[sign - value] = '\0';
    return CLI_OK;
}

static int take_replaced(void *to, const char *command, const char *value)
{
    char *old = NULL, *new = NULL;
    int status = split_pair(command, "replace-needed", value, &old, &new);

    if (status != CLI_OK)
        return status;
    add_edit(to, old, new, EXTI_NEEDED_LAST);
    free(old);
    free(new);
    return CLI_OK;
}

static int take_renamed(void *to, const char *command, const char *value)
{
    struct rewrite *r = to;
    const size_t n = r->opts.rename_count;
    char *old = NULL, *new = NULL;
    int status = split_pair(command, "rename-symbol", value, &old, &new);

    if (status != CLI_OK)
        return status;
    r->renames = cli_resize(r->renames, (n + 1) * sizeof *r->renames);
    r->renames[n] = (struct exti_rename){old, new};
    r->opts.renames = r->renames;
    r->opts.rename_count++;
    return CLI_OK;
}

static int take_path(void *to, const char *command, const char *value)
{
    struct rewrite *r = to;
    int status = check_not_empty(command, "prepend-path", value);

    if (status == CLI_OK)
        r->opts.path_prepend = value;
    return status;
}

static void free_rewrite(struct rewrite *r)
{
    for (size_t i = 0; i < r->opts.needed_count; i++) {
        free((char *)r->needed[i].from);
        free((char *)r->needed[i].to);
    }
    for (size_t i = 0; i < r->opts.rename_count; i++) {
        free((char *)r->renames[i].from);
        free((char *)r->renames[i].to);
    }
    free(r->needed);
    free(r->renames);
}

/* The library ignores a search path for a PE file, but whoever asks for one expects it. */
static int refuse_useless(const struct rewrite *r, const struct exti_image *im,
                          struct exti_error *err)
{
    if (!cli_is_pe(im) || (r->opts.path_set == NULL && r->opts.path_prepend == NULL))
        return 0;
    *err = (struct exti_error){.code = EXTI_E_UNSUPPORTED, .offset = EXTI_NO_OFFSET};
    strcpy(err->message, "a PE file has no search path to change");
    return err->code;
}

/* What is not in its file cannot come into another one. */
static int refuse_lean(const struct rewrite *r, struct exti_error *err)
{
    char *dir = cli_folder_of(r->file);
    const bool lean = dir != NULL && cli_is_lean(r->file, dir);

    free(dir);
    if (!lean)
        return 0;
    *err = (struct exti_error){.code = EXTI_E_UNSUPPORTED, .offset = EXTI_NO_OFFSET};
    strcpy(err->message, "is a lean copy, which leaves code and constants to its original; rewrite "
                         "that one");
    return err->code;
}

/* Gives the description of the result. */
static int rewrite_file(const struct rewrite *r, struct exti_image **im, struct exti_error *err)
{
    struct exti_image *before = NULL;
    int rc = exti_inspect(r->file, &before, err);

    if (rc == 0)
        rc = refuse_useless(r, before, err);
    if (rc == 0)
        rc = refuse_lean(r, err);
    if (rc == 0)
        rc = exti_rewrite(r->file, r->out, &r->opts, err);
    exti_image_free(before);
    return rc != 0 ? rc : exti_inspect(r->out, im, err);
}

static int report_failure(const struct rewrite *r, const struct exti_error *err)
{
    const bool absent = err->code == EXTI_E_ARG && strstr(err->message, "there is no '") != NULL;
    int status = cli_error(err, r->file);

    if (absent)
        cli_hint("if it may be absent, add --allow-absent");
    return status;
}

static int print_result(const struct rewrite *r, const struct exti_image *im, json_t *errors)
{
    struct exti_image_info info = {.size = sizeof info};
    json_t *needed = json_array();

    if (im != NULL)
        exti_image_info(im, &info);
    for (size_t i = 0; im != NULL && exti_image_needed(im, i) != NULL; i++)
        json_array_append_new(needed, cli_json_text(exti_image_needed(im, i)));
    return cli_json_print(json_pack("{s:o, s:o, s:o, s:o, s:O}", "source", cli_json_text(r->file),
                                    "copy", cli_json_text(im != NULL ? r->out : NULL), "id",
                                    cli_json_text(info.id), "needed", needed, "errors", errors));
}

static int rewrite_and_print(const struct rewrite *r)
{
    struct exti_image *im = NULL;
    struct exti_error err;
    json_t *errors = json_array();
    int status = CLI_OK;

    if (rewrite_file(r, &im, &err) != 0) {
        json_array_append_new(errors, cli_json_error(&err, r->file));
        status = report_failure(r, &err);
    } else if (!r->json) {
        cli_put(stdout, r->file);
        fputs(" -> ", stdout);
        cli_put(stdout, r->out);
        putchar('\n');
    }
    if (r->json && print_result(r, im, errors) != CLI_OK)
        status = CLI_FAILED;
    json_decref(errors);
    exti_image_free(im);
    return status;
}

static int take_arguments(int argc, char **argv, struct rewrite *r)
{
    const struct exti_rewrite_opts *o = &r->opts;

    if (optind == argc)
        return cli_usage("rewrite", "missing FILE");
    if (argc - optind > 1)
        return cli_usage("rewrite", "takes one FILE, not %d; the result goes to -o OUT",
                         argc - optind);
    if (o->id == NULL && o->needed_count == 0 && o->rename_count == 0 && o->path_set == NULL &&
        o->path_prepend == NULL)
        return cli_usage("rewrite", "nothing to change: give --id, --add-needed or another edit");
    r->file = argv[optind];
    if (r->out == NULL)
        r->out = r->file;
    return CLI_OK;
}

static int cmd_rewrite(int argc, char **argv)
{
    struct rewrite r = {.opts = {.size = sizeof r.opts}};
    bool sync = false;
    const struct cli_option options[] = {
        {.name = "output", .letter = 'o', .file = &r.out},
        {.name = "id", .file = &r.opts.id},
        {.name = "add-needed", .take = take_added, .to = &r},
        {.name = "add-needed-first", .take = take_added_first, .to = &r},
        {.name = "remove-needed", .take = take_removed, .to = &r},
        {.name = "replace-needed", .take = take_replaced, .to = &r},
        {.name = "allow-absent", .bits = &r.opts.flags, .bit = EXTI_RW_ALLOW_ABSENT},
        {.name = "set-path", .text = &r.opts.path_set},
        {.name = "prepend-path", .take = take_path, .to = &r},
        {.name = "rename-symbol", .take = take_renamed, .to = &r},
        {.name = "sync", .flag = &sync},
        {.name = "json", .flag = &r.json},
        {0}};
    int status = cli_parse("rewrite", argc, argv, options, help);

    if (status == CLI_OK)
        status = take_arguments(argc, argv, &r);
    r.opts.sync = sync;
    if (status == CLI_OK)
        status = rewrite_and_print(&r);
    free_rewrite(&r);
    return status;
}

const struct cli_command cli_command_rewrite = {
    "rewrite", "change a file's id, needed libraries and search path", cmd_rewrite};
