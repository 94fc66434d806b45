#include "cli/command.h"

#include "cli/args/option.h"
#include "cli/os/system.h"
#include "cli/output/json.h"
#include "cli/output/label.h"
#include "cli/output/message.h"
#include "cli/output/text.h"
#include "cli/report/hazards.h"
#include "cli/report/image.h"
#include "cli/report/symbols.h"

static const char help[] =
    "usage: extisolate inspect [OPTION]... FILE|DIR...\n"
    "\n"
    "Describes shared libraries: their format, what they need, which symbols of the Python API\n"
    "they import and export, and what matters when they are copied.  For a DIR, only the hazards\n"
    "of the libraries in it and below: what may go wrong with several copies in one process, and\n"
    "what to do.\n"
    "\n"
    "options:\n"
    "  --libpython PATH  the API is what this library exports; default: every name that begins\n"
    "                    with Py or _Py\n"
    "  --symbols         list the API symbols\n"
    "  --contexts N      print which scarce resources N contexts need\n"
    "  --json            print an array of objects, one for each FILE or DIR\n"
    "  -h, --help        show this\n"
    "\n"
    "examples:\n"
    "  extisolate inspect foo.cpython-311-x86_64-linux-gnu.so\n"
    "  extisolate inspect --symbols --libpython libtoyapi.so plugin.so\n"
    "  extisolate inspect --json *.so | jq -r '.[] | select(.flags.unique) | .file'\n"
    "  extisolate inspect --contexts 100 venv/lib/python3.11/site-packages\n"
    "\n"
    "Exit status: 0 done, 1 a FILE could not be read, 2 wrong usage.\n";

/* What was printed so far. */
struct output {
    const struct cli_image_opts *opts;
    json_t *all; /* with --json, else NULL */
    bool printed;
};

static int inspect_file(struct output *out, const char *file)
{
    struct exti_error err;
    struct exti_image *im = NULL;

    if (exti_inspect(file, &im, &err) != 0)
        return cli_error(&err, file);
    if (out->all != NULL) {
        json_array_append_new(out->all, cli_image_json(file, im, out->opts));
    } else {
        if (out->printed)
            putchar('\n');
        cli_image_print(file, im, out->opts);
    }
    exti_image_free(im);
    out->printed = true;
    return CLI_OK;
}

static void print_dir(const char *dir, const struct cli_hazards *h, size_t count, int contexts)
{
    fputs(cli_style(stdout, CLI_BOLD), stdout);
    cli_put(stdout, dir);
    printf("%s\n", cli_style(stdout, CLI_PLAIN));
    cli_label("files");
    printf("%zu librar%s\n", count, count == 1 ? "y" : "ies");
    cli_hazards_print_all(h, contexts);
}

static int inspect_dir(struct output *out, const char *dir)
{
    struct cli_hazards *h = cli_hazards_new();
    size_t count;

    int status = cli_hazards_add_tree(h, dir, &count);
    if (out->all != NULL) {
        json_array_append_new(out->all,
                              json_pack("{s:o, s:I, s:o}", "directory", cli_json_text(dir), "files",
                                        (json_int_t)count, "hazards",
                                        cli_hazards_all_json(h, out->opts->contexts)));
    } else {
        if (out->printed)
            putchar('\n');
        print_dir(dir, h, count, out->opts->contexts);
    }
    cli_hazards_free(h);
    out->printed = true;
    return status;
}

static int inspect_all(char **files, int count, const struct cli_image_opts *opts, bool json)
{
    struct output out = {opts, json ? json_array() : NULL, false};
    int status = CLI_OK;

    for (int i = 0; i < count; i++) {
        struct cli_stat st;
        int one = cli_stat(files[i], &st) && st.is_dir ? inspect_dir(&out, files[i])
                                                       : inspect_file(&out, files[i]);

        if (one != CLI_OK)
            status = one;
    }
    if (json && cli_json_print(out.all) != CLI_OK)
        status = CLI_FAILED;
    return status;
}

static int cmd_inspect(int argc, char **argv)
{
    struct cli_image_opts opts = {.contexts = 0};
    bool json = false;
    const struct cli_option options[] = {{.name = "libpython", .file = &opts.api.path},
                                         {.name = "symbols", .flag = &opts.symbols},
                                         {.name = "contexts", .count = &opts.contexts},
                                         {.name = "json", .flag = &json},
                                         {0}};
    int status = cli_parse("inspect", argc, argv, options, help);

    if (status != CLI_OK)
        return status;
    if (optind == argc)
        return cli_usage("inspect", "missing FILE or DIR");
    status = cli_api_load(&opts.api);
    if (status == CLI_OK)
        status = inspect_all(argv + optind, argc - optind, &opts, json);
    cli_api_free(&opts.api);
    return status;
}

const struct cli_command cli_command_inspect = {
    "inspect", "describe a file: its id, needed libraries, API symbols, TLS, flags", cmd_inspect};
