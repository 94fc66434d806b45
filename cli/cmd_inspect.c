#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

static const char help[] =
    "usage: extisolate inspect [OPTION]... FILE...\n"
    "\n"
    "Describes shared libraries: what they are, what they need, which symbols of the Python API "
    "they\n"
    "import and export, and what matters when they are copied.\n"
    "\n"
    "options:\n"
    "  --libpython PATH  the API is what this library exports; when not given, it is every name\n"
    "                    that begins with Py or _Py\n"
    "  --symbols         list the API symbols\n"
    "  --json            print an array of objects, one for each FILE\n"
    "  -h, --help        show this\n"
    "\n"
    "examples:\n"
    "  extisolate inspect foo.cpython-311-x86_64-linux-gnu.so\n"
    "  extisolate inspect --symbols --libpython libtoyapi.so plugin.so\n"
    "  extisolate inspect --json *.so | jq -r '.[] | select(.flags.unique) | .file'\n"
    "\n"
    "Exit status: 0 done, 1 a FILE could not be read, 2 wrong usage.\n";

static const struct flag {
    uint32_t bit;
    const char *key, *name, *means;
} flags[] = {
    {EXTI_IMAGE_UNIQUE, "unique", "unique symbols",
     "one for the whole process (STB_GNU_UNIQUE); ordinary ones in copies"},
    {EXTI_IMAGE_NODELETE, "nodelete", "nodelete", "stays in memory once loaded; cleared in copies"},
    {EXTI_IMAGE_STATIC_TLS, "static_tls", "static TLS",
     "its TLS is in a small block for all libraries; many copies may use it up"},
    {EXTI_IMAGE_TEXTREL, "textrel", "text relocations", "its code is changed as it is loaded"},
    {EXTI_IMAGE_SYMBOLIC, "symbolic", "symbolic", "its own symbols win over other libraries'"},
    {EXTI_IMAGE_BIND_NOW, "bind_now", "bind now", "loads only if every symbol is found at once"},
    {EXTI_IMAGE_INTERP, "interp", "interpreter", "also runs as a program"},
};
static const size_t flag_count = sizeof flags / sizeof *flags;

/* The names that make up the API; none: the Py prefix decides. */
struct api {
    struct exti_image *im; /* the strings' home */
    const char *path, **names;
    size_t count;
};

struct request {
    struct api api;
    bool json, symbols;
};

struct names {
    const char **items;
    size_t count;
};

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_api(const struct api *api, const char *name)
{
    if (api->path == NULL)
        return strncmp(name + (*name == '_'), "Py", 2) == 0;
    return api->count > 0 &&
           bsearch(&name, api->names, api->count, sizeof *api->names, by_name) != NULL;
}

/* The sorted names of `im` that the API has (all, for NULL) and that are exports, or are not. */
static struct names pick(const struct exti_image *im, const struct api *api, bool exports)
{
    struct exti_image_info info = {.size = sizeof info};
    struct names n = {NULL, 0};

    exti_image_info(im, &info);
    n.items = malloc((info.symbol_count + 1) * sizeof *n.items);
    for (size_t i = 0; n.items != NULL && i < info.symbol_count; i++) {
        struct exti_symbol_info s = {.size = sizeof s};
        if (exti_image_symbol(im, i, &s) == 0 && ((s.flags & EXTI_SYM_EXPORT) != 0) == exports &&
            (api == NULL || is_api(api, s.name)))
            n.items[n.count++] = s.name;
    }
    if (n.count > 0)
        qsort(n.items, n.count, sizeof *n.items, by_name);
    return n;
}

static size_t count_unique(const struct exti_image *im, size_t symbols)
{
    size_t n = 0;

    for (size_t i = 0; i < symbols; i++) {
        struct exti_symbol_info s = {.size = sizeof s};
        if (exti_image_symbol(im, i, &s) == 0 && (s.flags & EXTI_SYM_UNIQUE) != 0)
            n++;
    }
    return n;
}

/* ---- for people -------------------------------------------------------------------------------- */

static void label(const char *name)
{
    printf("  %s%-9s%s ", cli_style(stdout, CLI_DIM), name, cli_style(stdout, CLI_PLAIN));
}

static void line(const char *name, const char *text, const char *none)
{
    label(name);
    if (text != NULL)
        cli_put(stdout, text);
    else
        printf("%s%s%s", cli_style(stdout, CLI_DIM), none, cli_style(stdout, CLI_PLAIN));
    putchar('\n');
}

/* Names, after `verb` and their count: on the same line while they are few. */
static void print_names(const char *verb, const struct names *n, bool all, const char *after)
{
    printf("%s %zu symbol%s%s", verb, n->count, n->count == 1 ? "" : "s", after);
    for (size_t i = 0; i < n->count && (all || n->count <= 3); i++) {
        fputs(all ? "\n              " : i == 0 ? ": " : ", ", stdout);
        cli_put(stdout, n->items[i]);
    }
    putchar('\n');
}

static void print_api(const struct exti_image *im, const struct request *r)
{
    struct names imports = pick(im, &r->api, false), exports = pick(im, &r->api, true);
    const char *provider = NULL, *name;

    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++)
        if (strncmp(name, "libpython", 9) == 0)
            provider = name;
    label("API");
    print_names("imports", &imports, r->symbols,
                r->api.path != NULL || imports.count == 0 ? ""
                : provider != NULL
                    ? ", from the libpython it needs"
                    : ", from any library loaded globally; a copy, from its own libpython");
    label("");
    print_names("exports", &exports, r->symbols, "");
    free(imports.items);
    free(exports.items);
}

static void print_flags(const struct exti_image *im, const struct exti_image_info *info)
{
    const char *name = "flags";

    for (size_t i = 0; i < flag_count; i++) {
        if ((info->flags & flags[i].bit) == 0)
            continue;
        label(name);
        name = "";
        if (flags[i].bit == EXTI_IMAGE_UNIQUE)
            printf("%zu ", count_unique(im, info->symbol_count));
        printf("%s%s%s: %s\n", cli_style(stdout, CLI_YELLOW), flags[i].name,
               cli_style(stdout, CLI_PLAIN), flags[i].means);
    }
    if (*name != '\0')
        line(name, NULL, "none that matter here");
}

static void print_image(const char *file, const struct exti_image *im, const struct request *r)
{
    struct exti_image_info info = {.size = sizeof info};
    const char *needed;

    exti_image_info(im, &info);
    fputs(cli_style(stdout, CLI_BOLD), stdout);
    cli_put(stdout, file);
    printf("%s\n", cli_style(stdout, CLI_PLAIN));
    label("format");
    printf("%s, %d-bit, %s-endian, %s\n", info.format, info.bits,
           info.big_endian ? "big" : "little", info.machine);
    line("id", info.id, "none; extension modules need none, they are opened by path");
    for (size_t i = 0; (needed = exti_image_needed(im, i)) != NULL; i++)
        line(i == 0 ? "needed" : "", needed, "");
    if (info.needed_count == 0)
        line("needed", NULL, "none");
    line("rpath", info.rpath, "none");
    line("runpath", info.runpath, "none");
    line("build id", info.build_id, "none");
    print_api(im, r);
    label("TLS");
    if (info.tls_size != 0)
        printf("%" PRIu64 " bytes for each thread\n", info.tls_size);
    else
        printf("%snone%s\n", cli_style(stdout, CLI_DIM), cli_style(stdout, CLI_PLAIN));
    print_flags(im, &info);
}

/* ---- for programs ------------------------------------------------------------------------------ */

static json_t *names_json(const struct names *n)
{
    json_t *all = json_array();

    for (size_t i = 0; i < n->count; i++)
        json_array_append_new(all, cli_json_text(n->items[i]));
    return all;
}

static json_t *api_json(const struct exti_image *im, const struct request *r)
{
    struct names imports = pick(im, &r->api, false), exports = pick(im, &r->api, true);
    json_t *api = json_pack("{s:o, s:I, s:I}", "library", cli_json_text(r->api.path), "imported",
                            (json_int_t)imports.count, "exported", (json_int_t)exports.count);

    if (r->symbols) {
        json_object_set_new(api, "imports", names_json(&imports));
        json_object_set_new(api, "exports", names_json(&exports));
    }
    free(imports.items);
    free(exports.items);
    return api;
}

static json_t *image_json(const char *file, const struct exti_image *im, const struct request *r)
{
    struct exti_image_info info = {.size = sizeof info};
    json_t *needed = json_array(), *set = json_object();
    const char *name;

    exti_image_info(im, &info);
    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++)
        json_array_append_new(needed, cli_json_text(name));
    for (size_t i = 0; i < flag_count; i++)
        json_object_set_new(set, flags[i].key, json_boolean((info.flags & flags[i].bit) != 0));
    return json_pack(
        "{s:o, s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "file",
        cli_json_text(file), "format", info.format, "machine", info.machine, "bits", info.bits,
        "byte_order", info.big_endian ? "big" : "little", "id", cli_json_text(info.id), "needed",
        needed, "rpath", cli_json_text(info.rpath), "runpath", cli_json_text(info.runpath),
        "build_id", cli_json_text(info.build_id), "api", api_json(im, r), "tls_size",
        (json_int_t)info.tls_size, "symbols", (json_int_t)info.symbol_count, "unique_symbols",
        (json_int_t)count_unique(im, info.symbol_count), "flags", set);
}

/* ---- the command -------------------------------------------------------------------------------- */

static int load_api(struct api *api)
{
    struct exti_error err;

    if (api->path == NULL)
        return CLI_OK;
    if (exti_inspect(api->path, &api->im, &err) != 0)
        return cli_error(&err, api->path);
    struct names n = pick(api->im, NULL, true);
    api->names = n.items;
    api->count = n.count;
    return n.items != NULL ? CLI_OK : cli_fail(NULL, "out of memory");
}

static int inspect_all(char **files, int count, const struct request *r)
{
    json_t *all = json_array();
    int status = CLI_OK;
    bool printed = false;

    for (int i = 0; i < count; i++) {
        struct exti_error err;
        struct exti_image *im = NULL;

        if (exti_inspect(files[i], &im, &err) != 0) {
            status = cli_error(&err, files[i]);
            continue;
        }
        if (r->json) {
            json_array_append_new(all, image_json(files[i], im, r));
        } else {
            if (printed)
                putchar('\n');
            print_image(files[i], im, r);
            printed = true;
        }
        exti_image_free(im);
    }
    if (!r->json)
        json_decref(all);
    else if (cli_json_print(all) != CLI_OK)
        status = CLI_FAILED;
    return status;
}

int cmd_inspect(int argc, char **argv)
{
    enum { LIBPYTHON = 256, SYMBOLS, JSON };
    static const struct option longs[] = {{"libpython", required_argument, NULL, LIBPYTHON},
                                          {"symbols", no_argument, NULL, SYMBOLS},
                                          {"json", no_argument, NULL, JSON},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct request r = {.json = false};
    int o;

    while ((o = cli_getopt("inspect", argc, argv, ":h", longs)) != -1)
        switch (o) {
        case LIBPYTHON:
            r.api.path = optarg;
            break;
        case SYMBOLS:
            r.symbols = true;
            break;
        case JSON:
            r.json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return CLI_OK;
        default:
            return CLI_USAGE;
        }
    if (cli_no_empty("inspect", argc, argv, optind) != CLI_OK)
        return CLI_USAGE;
    if (optind == argc)
        return cli_usage("inspect", "which FILE?");
    int status = load_api(&r.api);
    if (status == CLI_OK)
        status = inspect_all(argv + optind, argc - optind, &r);
    free(r.api.names);
    exti_image_free(r.api.im);
    return status;
}
