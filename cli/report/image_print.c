/* What `inspect` prints about one file. */
#include "cli/report/image.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/find/format.h"
#include "cli/output/label.h"
#include "cli/output/text.h"
#include "cli/report/hazards.h"
#include "cli/report/pe.h"
#include "cli/report/symbols.h"

static const struct flag {
    uint32_t bit;
    const char *name, *means;
} flags[] = {
    {EXTI_IMAGE_UNIQUE, "unique symbols",
     "one for the whole process (STB_GNU_UNIQUE); ordinary ones in copies"},
    {EXTI_IMAGE_NODELETE, "nodelete", "stays in memory once loaded; cleared in copies"},
    {EXTI_IMAGE_STATIC_TLS, "static TLS",
     "its TLS is in a small block for all libraries; many copies may use it up"},
    {EXTI_IMAGE_TEXTREL, "text relocations", "its code is changed as it is loaded"},
    {EXTI_IMAGE_SYMBOLIC, "symbolic", "its own symbols win over other libraries'"},
    {EXTI_IMAGE_BIND_NOW, "bind now", "loads only if every symbol is found at once"},
    {EXTI_IMAGE_INTERP, "interpreter", "also runs as a program"},
    {EXTI_IMAGE_WITHHELD, "withheld", "a copy whose constructors only extisolate runs"},
    {EXTI_IMAGE_NODEFLIB, "nodeflib",
     "what it needs is not looked for in the system's default folders"},
};
static const size_t flag_count = sizeof flags / sizeof *flags;

static const struct flag macho_flags[] = {
    {EXTI_IMAGE_UNIQUE, "weak symbols",
     "one definition for the whole process; a copy uses its own"},
    {EXTI_IMAGE_NODELETE, "nodelete",
     "stays in memory once loaded (thread-locals, Objective-C, Swift); so do its copies"},
    {EXTI_IMAGE_CLASSES, "classes",
     "Objective-C classes or Swift types, whose names are one per process"},
};
static const size_t macho_flag_count = sizeof macho_flags / sizeof *macho_flags;

/* Prints a count of symbols, and their names if they are few or `all` are wanted. */
static void print_names(const char *verb, const struct cli_names *n, bool all, const char *after)
{
    printf("%s %zu symbol%s%s", verb, n->count, n->count == 1 ? "" : "s", after);
    for (size_t i = 0; i < n->count && (all || n->count <= 3); i++) {
        fputs(all ? "\n              " : i == 0 ? ": " : ", ", stdout);
        cli_put(stdout, n->items[i]);
    }
    putchar('\n');
}

static void print_api(const struct exti_image *im, const struct cli_image_opts *o)
{
    struct cli_names imports = cli_api_symbols(im, &o->api, false),
                     exports = cli_api_symbols(im, &o->api, true);
    const char *provider = NULL, *name;

    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++)
        if (strncmp(name, "libpython", 9) == 0)
            provider = name;
    cli_label("API");
    print_names("imports", &imports, o->symbols,
                o->api.path != NULL || imports.count == 0 || cli_is_macho(im) || cli_is_pe(im) ? ""
                : provider != NULL
                    ? ", from the libpython it needs"
                    : ", from any library loaded globally; a copy, from its own libpython");
    cli_label("");
    print_names("exports", &exports, o->symbols, "");
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
            printf("%zu ", cli_count_unique(im));
        printf("%s%s%s: %s\n", cli_style(stdout, CLI_YELLOW), f->name, cli_style(stdout, CLI_PLAIN),
               f->means);
    }
    if (*name != '\0')
        cli_line(name, NULL, "none that matter here");
}

static void print_lean(const struct exti_image_info *info)
{
    cli_label("lean");
    if (info->full == NULL)
        printf("yes: copies for contexts can map %" PRIu64 " bytes of it\n", info->shared_size);
    else
        printf("no: %s\n", info->full);
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

/* Prints to which library how many API symbols bind (two-level namespace). */
static void print_bindings(const struct exti_image *im, const struct cli_image_opts *o)
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
        if ((n = cli_count_bound(im, &o->api, special[i].library)) != 0) {
            cli_label("");
            printf("%zu bind to %s\n", n, special[i].name);
        }
    for (size_t i = 0; i < info.needed_count; i++)
        if ((n = cli_count_bound(im, &o->api, (int32_t)i + 1)) != 0) {
            cli_label("");
            printf("%zu bind to ", n);
            cli_put(stdout, exti_image_needed(im, i));
            putchar('\n');
        }
}

/* Versions are packed as xxxx.yy.zz (mach-o/loader.h); .zz is omitted when 0. */
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

/* Describes a thin Mach-O file, or one architecture of a universal file. */
static void print_macho(const struct exti_image *im, const struct cli_image_opts *o)
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
    print_api(im, o);
    print_bindings(im, o);
    cli_label("room");
    printf("%" PRIu64 " bytes for load commands\n", info.header_room);
    cli_line("signed", signatures[info.signature], "");
    print_tls(&info);
    print_flags(im, &info);
    cli_hazards_print(im, o->contexts);
}

static void print_universal(const struct exti_image *im, const struct cli_image_opts *o)
{
    const struct exti_image *slice;

    for (size_t i = 0; (slice = exti_image_slice(im, i)) != NULL; i++) {
        if (i > 0)
            putchar('\n');
        print_macho(slice, o);
    }
}

static void print_pe(const struct exti_image *im, const struct cli_image_opts *o)
{
    struct exti_image_info info = {.size = sizeof info};

    exti_image_info(im, &info);
    printf("PE%s, %d-bit, %s\n", info.bits == 64 ? "32+" : "32", info.bits, info.machine);
    cli_pe_print_libraries(im, cli_api_libraries(&o->api));
    cli_line("build id", info.build_id, "none");
    print_api(im, o);
    cli_pe_print_layout(&info);
    print_tls(&info);
    cli_pe_print_flags(im, &info);
    cli_hazards_print(im, o->contexts);
}

void cli_image_print(const char *file, const struct exti_image *im, const struct cli_image_opts *o)
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
            print_macho(im, o);
        else
            print_universal(im, o);
        return;
    }
    if (cli_is_pe(im)) {
        print_pe(im, o);
        return;
    }
    printf("%s, %d-bit, %s-endian, %s\n", info.format, info.bits,
           info.big_endian ? "big" : "little", info.machine);
    cli_line("id", info.id, "none; extension modules need none, they are opened by path");
    print_needed(im, &info, false);
    cli_line("rpath", info.rpath, "none");
    cli_line("runpath", info.runpath, "none");
    cli_line("build id", info.build_id, "none");
    print_api(im, o);
    print_tls(&info);
    print_lean(&info);
    print_flags(im, &info);
    cli_hazards_print(im, o->contexts);
}
