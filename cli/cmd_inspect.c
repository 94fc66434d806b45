#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/system.h"

static const char help[] =
    "usage: extisolate inspect [OPTION]... FILE|DIR...\n"
    "\n"
    "Describes shared libraries: what they are, what they need, which symbols of the Python API "
    "they\n"
    "import and export, and what matters when they are copied.  Of the libraries in a DIR and "
    "below\n"
    "it, the hazards alone: what may go wrong with several copies in a process, and what to do.\n"
    "\n"
    "options:\n"
    "  --libpython PATH  the API is what this library exports; when not given, it is every name\n"
    "                    that begins with Py or _Py\n"
    "  --symbols         list the API symbols\n"
    "  --contexts N      tell what N contexts need that is scarce\n"
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
    {EXTI_IMAGE_NODEFLIB, "nodeflib", "nodeflib",
     "what it needs is not looked for in the system's default folders"},
};
static const size_t flag_count = sizeof flags / sizeof *flags;

/* In Mach-O. */
static const struct flag macho_flags[] = {
    {EXTI_IMAGE_UNIQUE, "unique", "weak symbols",
     "one definition for the whole process; a copy uses its own"},
    {EXTI_IMAGE_NODELETE, "nodelete", "nodelete",
     "stays in memory once loaded (thread-locals, Objective-C, Swift); so do its copies"},
    {EXTI_IMAGE_CLASSES, "classes", "classes",
     "Objective-C classes or Swift types, whose names are one per process"},
};
static const size_t macho_flag_count = sizeof macho_flags / sizeof *macho_flags;

/* The names that make up the API; none: the Py prefix decides. */
struct api {
    struct exti_image *im; /* the strings' home */
    const char *path, **names;
    size_t count;
    const char *libraries[3]; /* what such a library may be called, NULL-ended */
};

struct request {
    struct api api;
    bool json, symbols;
    int contexts; /* 0: any number */
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
        return strncmp(name + strspn(name, "_"), "Py", 2) == 0;
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

/* How many API symbols a Mach-O file binds to `library`. */
static size_t count_bound(const struct exti_image *im, const struct api *api, int32_t library)
{
    struct exti_symbol_info s = {.size = sizeof s};
    size_t n = 0;

    for (size_t i = 0; exti_image_symbol(im, i, &s) == 0; i++)
        if ((s.flags & EXTI_SYM_EXPORT) == 0 && s.library == library && is_api(api, s.name))
            n++;
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

void cli_label(const char *name)
{
    printf("  %s%-9s%s ", cli_style(stdout, CLI_DIM), name, cli_style(stdout, CLI_PLAIN));
}

void cli_line(const char *name, const char *text, const char *none)
{
    cli_label(name);
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
    cli_label("API");
    print_names("imports", &imports, r->symbols,
                r->api.path != NULL || imports.count == 0 || cli_is_macho(im) || cli_is_pe(im) ? ""
                : provider != NULL
                    ? ", from the libpython it needs"
                    : ", from any library loaded globally; a copy, from its own libpython");
    cli_label("");
    print_names("exports", &exports, r->symbols, "");
    free(imports.items);
    free(exports.items);
}

static void print_flags(const struct exti_image *im, const struct exti_image_info *info)
{
    const struct flag *f = cli_is_macho(im) ? macho_flags : flags;
    const struct flag *end = f + (f == flags ? flag_count : macho_flag_count);
    const char *name = "flags";

    for (; f < end; f++) {
        if ((info->flags & f->bit) == 0)
            continue;
        cli_label(name);
        name = "";
        if (f->bit == EXTI_IMAGE_UNIQUE && !cli_is_macho(im))
            printf("%zu ", count_unique(im, info->symbol_count));
        printf("%s%s%s: %s\n", cli_style(stdout, CLI_YELLOW), f->name, cli_style(stdout, CLI_PLAIN),
               f->means);
    }
    if (*name != '\0')
        cli_line(name, NULL, "none that matter here");
}

static void print_tls(const struct exti_image_info *info)
{
    cli_label("TLS");
    if (info->tls_size != 0)
        printf("%" PRIu64 " bytes for each thread\n", info->tls_size);
    else
        printf("%snone%s\n", cli_style(stdout, CLI_DIM), cli_style(stdout, CLI_PLAIN));
}

static const char *const signatures[] = {"none", "ad hoc, a linker's", "ad hoc",
                                         "a certificate's; a copy gets an ad hoc one"};

/* How many of the API symbols bind where, the names of libraries as dyld counts them. */
static void print_bindings(const struct exti_image *im, const struct request *r)
{
    static const struct {
        int32_t library;
        const char *name;
    } special[] = {{EXTI_BIND_FLAT, "any library loaded (flat); a copy, to its own libpython"},
                   {EXTI_BIND_MAIN, "the main program; a copy, to its own libpython"},
                   {EXTI_BIND_WEAK, "one definition for the process (weak)"},
                   {EXTI_BIND_SELF, "the file itself"}};
    struct exti_image_info info = {.size = sizeof info};
    size_t n;

    exti_image_info(im, &info);
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if ((n = count_bound(im, &r->api, special[i].library)) != 0) {
            cli_label("");
            printf("%zu bind to %s\n", n, special[i].name);
        }
    for (size_t i = 0; i < info.needed_count; i++)
        if ((n = count_bound(im, &r->api, (int32_t)i + 1)) != 0) {
            cli_label("");
            printf("%zu bind to ", n);
            cli_put(stdout, exti_image_needed(im, i));
            putchar('\n');
        }
}

/* "13.3", or "13.3.1", of xxxx.yy.zz. */
static void print_version(const char *name, uint32_t v)
{
    printf(", %s %" PRIu32 ".%" PRIu32, name, v >> 16, v >> 8 & 0xff);
    if (v & 0xff)
        printf(".%" PRIu32, v & 0xff);
}

static void print_needed(const struct exti_image *im, const struct exti_image_info *info,
                         bool numbered)
{
    const char *needed;

    for (size_t i = 0; (needed = exti_image_needed(im, i)) != NULL; i++) {
        uint32_t how = exti_image_needed_flags(im, i);

        cli_label(i == 0 ? "needed" : "");
        if (numbered)
            printf("%2zu  ", i + 1);
        cli_put(stdout, needed);
        printf("%s%s%s\n", how & EXTI_NEED_WEAK ? " (may be missing)" : "",
               how & EXTI_NEED_REEXPORT ? " (re-exported)" : "",
               how & EXTI_NEED_UPWARD ? " (upward)" : "");
    }
    if (info->needed_count == 0)
        cli_line("needed", NULL, "none");
}

/* What a Mach-O file, or one architecture of it, has. */
static void print_macho(const struct exti_image *im, const struct request *r)
{
    struct exti_image_info info = {.size = sizeof info};
    const char *path;

    exti_image_info(im, &info);
    cli_label("machine");
    printf("%s, %d-bit", info.machine, info.bits);
    if (info.min_os != 0)
        print_version("macOS", info.min_os);
    if (info.sdk != 0)
        print_version("SDK", info.sdk);
    putchar('\n');
    cli_line("id", info.id, info.flags & EXTI_IMAGE_BUNDLE ? "none; bundles have none" : "none");
    print_needed(im, &info, true);
    for (size_t i = 0; (path = exti_image_path(im, i)) != NULL; i++)
        cli_line(i == 0 ? "rpath" : "", path, "");
    cli_line("UUID", info.build_id, "none");
    print_api(im, r);
    print_bindings(im, r);
    cli_label("room");
    printf("%" PRIu64 " bytes for load commands\n", info.header_room);
    cli_line("signed", signatures[info.signature], "");
    print_tls(&info);
    print_flags(im, &info);
    cli_hazards_print(im, r->contexts);
}

static void print_universal(const struct exti_image *im, const struct request *r)
{
    const struct exti_image *slice;

    for (size_t i = 0; (slice = exti_image_slice(im, i)) != NULL; i++) {
        if (i > 0)
            putchar('\n');
        print_macho(slice, r);
    }
}

static const char *const *libraries(const struct request *r)
{
    return r->api.path != NULL ? r->api.libraries : NULL;
}

static void print_pe(const struct exti_image *im, const struct request *r)
{
    struct exti_image_info info = {.size = sizeof info};

    exti_image_info(im, &info);
    printf("PE%s, %d-bit, %s\n", info.bits == 64 ? "32+" : "32", info.bits, info.machine);
    cli_pe_print_libraries(im, libraries(r));
    cli_line("build id", info.build_id, "none");
    print_api(im, r);
    cli_pe_print_layout(&info);
    print_tls(&info);
    cli_pe_print_flags(im, &info);
    cli_hazards_print(im, r->contexts);
}

static void print_image(const char *file, const struct exti_image *im, const struct request *r)
{
    struct exti_image_info info = {.size = sizeof info};

    exti_image_info(im, &info);
    fputs(cli_style(stdout, CLI_BOLD), stdout);
    cli_put(stdout, file);
    printf("%s\n", cli_style(stdout, CLI_PLAIN));
    cli_label("format");
    if (cli_is_macho(im)) {
        if (info.slice_count == 0)
            printf("Mach-O\n");
        else
            printf("Mach-O, %zu architectures\n", info.slice_count);
        if (info.slice_count == 0)
            print_macho(im, r);
        else
            print_universal(im, r);
        return;
    }
    if (cli_is_pe(im)) {
        print_pe(im, r);
        return;
    }
    printf("%s, %d-bit, %s-endian, %s\n", info.format, info.bits,
           info.big_endian ? "big" : "little", info.machine);
    cli_line("id", info.id, "none; extension modules need none, they are opened by path");
    print_needed(im, &info, false);
    cli_line("rpath", info.rpath, "none");
    cli_line("runpath", info.runpath, "none");
    cli_line("build id", info.build_id, "none");
    print_api(im, r);
    print_tls(&info);
    print_flags(im, &info);
    cli_hazards_print(im, r->contexts);
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

/* Where the API symbols bind: their number by library. */
static json_t *bindings_json(const struct exti_image *im, const struct request *r)
{
    static const struct {
        int32_t library;
        const char *key;
    } special[] = {{EXTI_BIND_FLAT, "flat"},
                   {EXTI_BIND_MAIN, "main"},
                   {EXTI_BIND_WEAK, "weak"},
                   {EXTI_BIND_SELF, "self"}};
    json_t *bindings = json_object();
    const char *name;
    size_t n;

    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if ((n = count_bound(im, &r->api, special[i].library)) != 0)
            json_object_set_new(bindings, special[i].key, json_integer((json_int_t)n));
    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++)
        if ((n = count_bound(im, &r->api, (int32_t)i + 1)) != 0) {
            char *safe = cli_safe(name);

            json_object_set_new(bindings, safe != NULL ? safe : "?", json_integer((json_int_t)n));
            free(safe);
        }
    return bindings;
}

static json_t *macho_json(const struct exti_image *im, const struct exti_image_info *info,
                          const struct request *r)
{
    static const char *const kinds[] = {"none", "linker", "adhoc", "identity"};
    json_t *paths = json_array();
    const char *path;

    for (size_t i = 0; (path = exti_image_path(im, i)) != NULL; i++)
        json_array_append_new(paths, cli_json_text(path));
    return json_pack("{s:b, s:o, s:o, s:I, s:s}", "bundle", (info->flags & EXTI_IMAGE_BUNDLE) != 0,
                     "rpaths", paths, "bindings", bindings_json(im, r), "header_room",
                     (json_int_t)info->header_room, "signature", kinds[info->signature]);
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
    json_t *all = json_pack(
        "{s:o, s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "file",
        cli_json_text(file), "format", info.format, "machine", info.machine, "bits", info.bits,
        "byte_order", info.big_endian ? "big" : "little", "id", cli_json_text(info.id), "needed",
        needed, "rpath", cli_json_text(info.rpath), "runpath", cli_json_text(info.runpath),
        "build_id", cli_json_text(info.build_id), "api", api_json(im, r), "tls_size",
        (json_int_t)info.tls_size, "symbols", (json_int_t)info.symbol_count, "unique_symbols",
        (json_int_t)count_unique(im, info.symbol_count), "flags", set);
    json_object_set_new(all, "hazards", cli_hazards_json(im, r->contexts));
    if (cli_is_macho(im))
        json_object_update_new(all, macho_json(im, &info, r));
    if (cli_is_pe(im))
        json_object_update_new(all, cli_pe_json(im, libraries(r)));
    return all;
}

/* As the first architecture that can be rewritten, and "slices" for all of a universal file. */
static json_t *file_json(const char *file, const struct exti_image *im, const struct request *r)
{
    json_t *all = image_json(file, im, r), *slices = json_array();
    const struct exti_image *slice;

    for (size_t i = 0; (slice = exti_image_slice(im, i)) != NULL; i++) {
        json_t *one = image_json(file, slice, r);

        json_object_del(one, "file");
        json_array_append_new(slices, one);
    }
    if (json_array_size(slices) > 0)
        json_object_set(all, "slices", slices);
    json_decref(slices);
    return all;
}

/* ---- the command -------------------------------------------------------------------------------- */

static int load_api(struct api *api)
{
    struct exti_error err;

    if (api->path == NULL)
        return CLI_OK;
    if (exti_inspect(api->path, &api->im, &err) != 0)
        return cli_error(&err, api->path);
    struct exti_image_info info = {.size = sizeof info};
    struct names n = pick(api->im, NULL, true);
    exti_image_info(api->im, &info);
    api->libraries[0] = cli_base_name(api->path);
    api->libraries[1] = info.id;
    api->names = n.items;
    api->count = n.count;
    return n.items != NULL ? CLI_OK : cli_fail(NULL, "out of memory");
}

/* What is printed: an array of all, or each after the other. */
struct output {
    const struct request *r;
    json_t *all;
    bool printed;
};

static int inspect_file(struct output *out, const char *file)
{
    struct exti_error err;
    struct exti_image *im = NULL;

    if (exti_inspect(file, &im, &err) != 0)
        return cli_error(&err, file);
    if (out->r->json) {
        json_array_append_new(out->all, file_json(file, im, out->r));
    } else {
        if (out->printed)
            putchar('\n');
        print_image(file, im, out->r);
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

    if (h == NULL)
        return cli_fail(NULL, "out of memory");
    int status = cli_hazards_add_tree(h, dir, &count);
    if (out->r->json) {
        json_array_append_new(out->all,
                              json_pack("{s:o, s:I, s:o}", "directory", cli_json_text(dir), "files",
                                        (json_int_t)count, "hazards",
                                        cli_hazards_all_json(h, out->r->contexts)));
    } else {
        if (out->printed)
            putchar('\n');
        print_dir(dir, h, count, out->r->contexts);
    }
    cli_hazards_free(h);
    out->printed = true;
    return status;
}

static int inspect_all(char **files, int count, const struct request *r)
{
    struct output out = {r, json_array(), false};
    int status = CLI_OK;

    for (int i = 0; i < count; i++) {
        struct cli_stat st;
        int one = cli_stat(files[i], &st) && st.is_dir ? inspect_dir(&out, files[i])
                                                       : inspect_file(&out, files[i]);

        if (one != CLI_OK)
            status = one;
    }
    if (!r->json)
        json_decref(out.all);
    else if (cli_json_print(out.all) != CLI_OK)
        status = CLI_FAILED;
    return status;
}

int cmd_inspect(int argc, char **argv)
{
    enum { LIBPYTHON = 256, SYMBOLS, CONTEXTS, JSON };
    static const struct option longs[] = {{"libpython", required_argument, NULL, LIBPYTHON},
                                          {"symbols", no_argument, NULL, SYMBOLS},
                                          {"contexts", required_argument, NULL, CONTEXTS},
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
        case CONTEXTS:
            if (!cli_parse_count(optarg, &r.contexts))
                return cli_usage("inspect", "--contexts takes a number from 1 to %d, not '%s'",
                                 CLI_CONTEXTS_MAX, optarg);
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
        return cli_usage("inspect", "which FILE or DIR?");
    int status = load_api(&r.api);
    if (status == CLI_OK)
        status = inspect_all(argv + optind, argc - optind, &r);
    free(r.api.names);
    exti_image_free(r.api.im);
    return status;
}
