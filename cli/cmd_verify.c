#include "cli/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/args/option.h"
#include "cli/find/contexts.h"
#include "cli/os/memory.h"
#include "cli/os/path.h"
#include "cli/os/system.h"
#include "cli/output/json.h"
#include "cli/output/message.h"
#include "cli/output/progress.h"
#include "cli/output/text.h"
#include "cli/report/hazards.h"
#include "cli/report/pe.h"

static const char help[] =
    "usage: extisolate verify [--json] CTXDIR...\n"
    "       extisolate verify [--json] FILE --against ORIGINAL\n"
    "\n"
    "Checks copies against their sources: bytes may differ only where the recorded edits say so,\n"
    "the copies of a context may refer only to each other, and nothing else may be in CTXDIR.\n"
    "CTXDIR may also be a directory of context directories, as 'extisolate run --dir' makes it.\n"
    "\n"
    "Also notes what limits the number of contexts, or matters when copies are unloaded; a note\n"
    "is not a finding.\n"
    "\n"
    "options:\n"
    "  --against ORIGINAL  check FILE, one copy in any place, against the file it was made from\n"
    "  --json              print the findings as JSON\n"
    "  -h, --help          show this\n"
    "\n"
    "examples:\n"
    "  extisolate verify ctx\n"
    "  extisolate verify copy.so --against /usr/lib/python3/dist-packages/foo.so\n"
    "\n"
    "Exit status: 0 nothing found, 1 something is wrong or could not be checked, 2 wrong usage.\n";

struct verify {
    bool json;
    json_t *findings, *notes;
    size_t checked;
    struct cli_progress *bar;
};

static int print_finding(void *user, const struct exti_error *finding)
{
    struct verify *v = user;

    if (v->json) {
        json_array_append_new(v->findings, cli_json_error(finding, NULL));
        return 0;
    }
    cli_progress_hide(v->bar);
    fputs(cli_style(stdout, CLI_RED), stdout);
    cli_put(stdout, finding->file);
    fputs(cli_style(stdout, CLI_PLAIN), stdout);
    if (finding->offset != EXTI_NO_OFFSET)
        printf(": offset 0x%" PRIx64, finding->offset);
    fputs(": ", stdout);
    cli_put(stdout, finding->message);
    putchar('\n');
    cli_progress_show(v->bar);
    return 0;
}

/* A DLL may look up a library by a name that it has as text.  No rewrite can change that, so it is
 * noted and is not a finding. */
static void note_mentions(struct verify *v, const char *copy, const char *original,
                          const char *const *api)
{
    json_t *all = cli_pe_mentions_in(original, api), *one;
    size_t i;

    json_array_foreach(all, i, one)
    {
        uint64_t at = (uint64_t)json_integer_value(json_object_get(one, "offset"));

        if (v->json) {
            json_object_set_new(one, "file", cli_json_text(copy));
            json_array_append(v->notes, one);
            continue;
        }
        cli_put(stdout, copy);
        printf(": %snote%s: its original has the name ", cli_style(stdout, CLI_YELLOW),
               cli_style(stdout, CLI_PLAIN));
        cli_put(stdout, json_string_value(json_object_get(one, "name")));
        printf(" at 0x%" PRIx64 " and may look it up at run time\n", at);
    }
    json_decref(all);
}

/* Reads the copies, not their sources: hazards that are cured in copies are not noted. */
static void note_hazards(const struct verify *v, const char *dir, const struct exti_dir *d)
{
    struct exti_copy_info info = {.size = sizeof info};
    struct cli_hazards *h = cli_hazards_new();

    for (size_t i = 0; exti_dir_copy(d, i, &info) == 0; i++) {
        struct exti_image *im = NULL;

        if (cli_worked(exti_inspect(info.copy, &im, NULL)))
            cli_hazards_add(h, info.copy, im);
        exti_image_free(im);
    }
    cli_hazards_note(h, dir, v->json ? v->notes : NULL);
    cli_hazards_free(h);
}

static void note_dir(struct verify *v, const struct exti_dir *d)
{
    const char *api[] = {NULL, NULL};
    struct exti_copy_info info = {.size = sizeof info};

    for (size_t i = 0; exti_dir_copy(d, i, &info) == 0; i++) {
        if (info.is_api)
            api[0] = cli_base_name(info.source);
        else
            note_mentions(v, info.copy, info.source, api);
    }
}

static int conclude(const struct verify *v, const char *what, size_t findings, const char *good)
{
    if (!v->json) {
        cli_put(stdout, what);
        if (findings == 0)
            printf(": %s%s%s\n", cli_style(stdout, CLI_GREEN), good, cli_style(stdout, CLI_PLAIN));
        else
            printf(": %s%zu finding%s%s\n", cli_style(stdout, CLI_RED), findings,
                   findings == 1 ? "" : "s", cli_style(stdout, CLI_PLAIN));
    }
    return findings == 0 ? CLI_OK : CLI_FAILED;
}

static int verify_dir(void *user, const char *dir)
{
    struct verify *v = user;
    struct exti_error err;
    struct exti_dir *d = NULL;
    char good[64];
    size_t findings = 0;

    v->checked++;
    v->bar = cli_progress_start("checking", 0);
    cli_progress_step(v->bar, 0, dir);
    int rc = exti_dir_verify(dir, print_finding, v, &findings, &err);
    cli_progress_end(v->bar);
    v->bar = NULL;
    if (rc != 0 || exti_dir_read(dir, &d, &err) != 0) {
        json_array_append_new(v->findings, cli_json_error(&err, dir));
        return cli_error(&err, dir);
    }
    cli_warn_untrusted(dir);
    size_t count = exti_dir_count(d);
    snprintf(good, sizeof good, "%zu cop%s, all sound", count, count == 1 ? "y" : "ies");
    note_dir(v, d);
    note_hazards(v, dir, d);
    exti_dir_free(d);
    return conclude(v, dir, findings, good);
}

static int refuse_lean(struct verify *v, const char *copy, const char *dir)
{
    struct exti_error err = {.code = EXTI_E_UNSUPPORTED, .offset = EXTI_NO_OFFSET};

    snprintf(err.message, sizeof err.message,
             "is a lean copy, which leaves code and constants to its original; to check it with "
             "the others: extisolate verify %.200s",
             dir);
    json_array_append_new(v->findings, cli_json_error(&err, copy));
    return cli_error(&err, copy);
}

static int verify_file(struct verify *v, const char *copy, const char *original)
{
    char *dir = cli_folder_of(copy);
    struct exti_error err;
    size_t findings = 0;
    int refused = dir != NULL && cli_is_lean(copy, dir) ? refuse_lean(v, copy, dir) : CLI_OK;

    free(dir);
    v->checked++;
    if (refused != CLI_OK)
        return refused;
    if (exti_verify(copy, original, print_finding, v, &findings, &err) != 0) {
        json_array_append_new(v->findings, cli_json_error(&err, copy));
        return cli_error(&err, copy);
    }
    note_mentions(v, copy, original, NULL);
    return conclude(v, copy, findings, "a sound copy");
}

static int verify_all(struct verify *v, char **paths, int count, const char *original)
{
    int status = CLI_OK;

    v->findings = json_array();
    v->notes = json_array();
    for (int i = 0; i < count; i++) {
        int one = original != NULL ? verify_file(v, paths[i], original)
                                   : cli_each_context(paths[i], verify_dir, v);
        if (one > status)
            status = one;
    }
    if (v->json && cli_json_print(json_pack("{s:b, s:I, s:O, s:O}", "ok", status == CLI_OK,
                                            "checked", (json_int_t)v->checked, "findings",
                                            v->findings, "notes", v->notes)) != CLI_OK)
        status = CLI_FAILED;
    json_decref(v->findings);
    json_decref(v->notes);
    return status;
}

static bool is_dir(const char *path, bool *exists)
{
    struct cli_stat st;

    *exists = cli_stat(path, &st);
    return *exists && st.is_dir;
}

static int cmd_verify(int argc, char **argv)
{
    struct verify v = {.json = false};
    const char *original = NULL;
    const struct cli_option options[] = {
        {.name = "against", .file = &original}, {.name = "json", .flag = &v.json}, {0}};
    int status = cli_parse("verify", argc, argv, options, help);
    bool exists;

    if (status != CLI_OK)
        return status;
    if (optind == argc)
        return cli_usage("verify", "missing CTXDIR, or FILE and --against ORIGINAL");
    if (original != NULL && argc - optind > 1)
        return cli_usage("verify", "--against takes one FILE, not %d", argc - optind);
    for (int i = optind; i < argc; i++) {
        bool dir = is_dir(argv[i], &exists);
        if (original != NULL && dir)
            return cli_usage("verify", "'%s' is a directory, but --against takes a FILE", argv[i]);
        if (original == NULL && exists && !dir)
            return cli_usage(
                "verify", "'%s' is a file, not a CTXDIR; to check one copy, add --against ORIGINAL",
                argv[i]);
    }
    return verify_all(&v, argv + optind, argc - optind, original);
}

const struct cli_command cli_command_verify = {"verify", "check copies against their sources",
                                               cmd_verify};
