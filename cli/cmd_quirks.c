#include "cli/command.h"

#include <stdlib.h>

#include "cli/args/option.h"
#include "cli/args/quirks.h"
#include "cli/os/system.h"
#include "cli/output/json.h"
#include "cli/output/message.h"
#include "cli/output/text.h"

static const char help[] =
    "usage: extisolate quirks [OPTION]... [FILE]...\n"
    "\n"
    "Lists the rules for packages that need special treatment: libraries to share or isolate,\n"
    "symbols to rename or redirect, environment variables to set, files that cannot be isolated\n"
    "and why.  With FILEs, lists the rules that apply to each.\n"
    "\n"
    "options:\n"
    "  --quirks FILE  add the rules of FILE; they win over the built-in ones and over those of\n"
    "                 FILEs given before.  May be given several times\n"
    "  --json         print an array of objects, one for each rule or FILE\n"
    "  -h, --help     show this\n"
    "\n"
    "examples:\n"
    "  extisolate quirks\n"
    "  extisolate quirks --quirks mine.json foo.cpython-311-x86_64-linux-gnu.so\n"
    "  extisolate quirks --json *.so | jq -r '.[] | select(.quirks != []) | .file'\n"
    "\n"
    "extisolate-quirks(5) describes the format.  Exit status: 0 done, 1 a file could not be read\n"
    "or does not follow the format, 2 wrong usage.\n";

struct request {
    struct cli_values files; /* --quirks */
    bool json;
};

/* ---- for programs ---------------------------------------------------------------------------- */

static json_t *rule_json(const struct exti_quirk_info *info)
{
    return json_pack("{s:s, s:o, s:I, s:o, s:o}", "id", info->id, "file", cli_json_text(info->file),
                     "index", (json_int_t)info->index, "disabled_by",
                     cli_json_text(info->disabled_by), "rule", json_loads(info->rule, 0, NULL));
}

static json_t *file_json(const struct exti_quirks *q, const char *file, const char *path,
                         const struct exti_image *im)
{
    json_t *rules = json_array(), *environment = json_object();
    const char *name, *value;

    for (size_t i = exti_quirks_next(q, path, im, 0); i < exti_quirks_count(q);
         i = exti_quirks_next(q, path, im, i + 1)) {
        struct exti_quirk_info info = {.size = sizeof info};
        if (exti_quirks_info(q, i, &info) == 0)
            json_array_append_new(rules, rule_json(&info));
    }
    for (size_t i = 0; exti_quirks_environment(q, path, im, i, &name, &value); i++)
        json_object_set_new(environment, name, json_string(value));
    return json_pack("{s:o, s:o, s:o}", "file", cli_json_text(file), "quirks", rules, "environment",
                     environment);
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_label(int indent, const char *name)
{
    printf("%*s%s%-11s%s  ", indent, "", cli_style(stdout, CLI_DIM), name,
           cli_style(stdout, CLI_PLAIN));
}

/* "a", "a -> b, c -> d" or "a=b, c=d" */
static void print_member(int indent, const json_t *rule, const char *name, const char *between)
{
    const json_t *value = json_object_get(rule, name);
    const char *key, *separator = "";
    json_t *one;

    if (value == NULL)
        return;
    print_label(indent, name);
    if (json_is_string(value))
        cli_put(stdout, json_string_value(value));
    json_object_foreach((json_t *)value, key, one)
    {
        fputs(separator, stdout);
        cli_put(stdout, key);
        fputs(between, stdout);
        cli_put(stdout, json_string_value(one));
        separator = ", ";
    }
    putchar('\n');
}

static void print_rule(int indent, const struct exti_quirk_info *info)
{
    json_t *rule = json_loads(info->rule, 0, NULL);

    printf("%*s%s%s%s (", indent, "", cli_style(stdout, CLI_BOLD), info->id,
           cli_style(stdout, CLI_PLAIN));
    cli_put(stdout, info->file != NULL ? info->file : "built in");
    fputs(")\n", stdout);
    indent += 2;
    if (info->disabled_by != NULL) {
        print_label(indent, "disabled by");
        cli_put(stdout, info->disabled_by);
        putchar('\n');
    }
    print_member(indent, rule, "match", " ");
    print_member(indent, rule, "library", "");
    print_member(indent, rule, "rename", " -> ");
    print_member(indent, rule, "redirect", " -> ");
    print_member(indent, rule, "environment", "=");
    print_member(indent, rule, "refuse", "");
    print_member(indent, rule, "note", "");
    json_decref(rule);
}

static void print_file(const struct exti_quirks *q, const char *file, const char *path,
                       const struct exti_image *im)
{
    const size_t count = exti_quirks_count(q);
    size_t i = exti_quirks_next(q, path, im, 0);

    cli_put(stdout, file);
    fputs(i < count ? "\n" : "\n  none\n", stdout);
    for (; i < count; i = exti_quirks_next(q, path, im, i + 1)) {
        struct exti_quirk_info info = {.size = sizeof info};
        if (exti_quirks_info(q, i, &info) == 0)
            print_rule(2, &info);
    }
}

/* ---- the command ----------------------------------------------------------------------------- */

static int list_rules(const struct exti_quirks *q, json_t *all)
{
    for (size_t i = 0; i < exti_quirks_count(q); i++) {
        struct exti_quirk_info info = {.size = sizeof info};
        if (exti_quirks_info(q, i, &info) != 0)
            continue;
        if (all != NULL)
            json_array_append_new(all, rule_json(&info));
        else
            print_rule(0, &info);
    }
    if (exti_quirks_count(q) == 0 && all == NULL)
        puts("no rules are built in, and --quirks names no file");
    return CLI_OK;
}

/* Rules match the path without symbolic links. */
static int list_file(const struct exti_quirks *q, const char *file, json_t *all)
{
    struct exti_error err;
    struct exti_image *im = NULL;
    char *path = cli_full_path(file);

    if (exti_inspect(file, &im, &err) != 0) {
        free(path);
        return cli_error(&err, file);
    }
    if (all != NULL)
        json_array_append_new(all, file_json(q, file, path != NULL ? path : file, im));
    else
        print_file(q, file, path != NULL ? path : file, im);
    exti_image_free(im);
    free(path);
    return CLI_OK;
}

static int list_quirks(const struct request *r, char **files, int count)
{
    struct exti_error err;
    struct exti_quirks *q;
    json_t *all = r->json ? json_array() : NULL;
    int status = CLI_OK;

    if (cli_open_quirks(&r->files, &q, &err) != CLI_OK) {
        json_decref(all);
        return CLI_FAILED;
    }
    if (count == 0)
        list_rules(q, all);
    for (int i = 0; i < count; i++)
        if (list_file(q, files[i], all) != CLI_OK)
            status = CLI_FAILED;
    exti_quirks_free(q);
    if (r->json && cli_json_print(all) != CLI_OK)
        status = CLI_FAILED;
    return status;
}

static int cmd_quirks(int argc, char **argv)
{
    struct request r = {.json = false};
    const struct cli_option options[] = {
        {.name = "quirks", .values = &r.files}, {.name = "json", .flag = &r.json}, {0}};
    int status = cli_parse("quirks", argc, argv, options, help);

    if (status == CLI_OK)
        status = list_quirks(&r, argv + optind, argc - optind);
    free(r.files.items);
    return status;
}

const struct cli_command cli_command_quirks = {
    "quirks", "list the rules for packages that need special treatment", cmd_quirks};
