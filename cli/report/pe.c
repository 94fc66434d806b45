#include "cli/report/pe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/find/format.h"
#include "cli/os/memory.h"
#include "cli/output/json.h"
#include "cli/output/label.h"
#include "cli/output/text.h"

/* ---- kinds of libraries ---------------------------------------------------------------------- */

enum kind { API, STABLE, API_SET, SYSTEM, RUNTIME, PROGRAM, OTHER };

static const struct {
    const char *key, *means;
} kinds[] = {
    [API] = {"api", "a copy has its context's own"},
    [STABLE] = {"stable_api", "a copy has its context's libpython in place of it"},
    [API_SET] = {"api_set", "stays: an API set, the system's"},
    [SYSTEM] = {"system", "stays: the system's"},
    [RUNTIME] = {"runtime", "stays: a run-time library, one for the process"},
    [PROGRAM] = {"program", "stays: the program that loads it"},
    [OTHER] = {"other", "a copy has its context's own, unless it is shared or not found"},
};

static const char *const system_dlls[] = {"advapi32",     "bcrypt",   "bcryptprimitives",
                                          "cfgmgr32",     "combase",  "comctl32",
                                          "comdlg32",     "crypt32",  "cryptbase",
                                          "d3d11",        "d3d9",     "dbghelp",
                                          "dnsapi",       "dwmapi",   "dwrite",
                                          "dxgi",         "gdi32",    "gdiplus",
                                          "hid",          "imm32",    "iphlpapi",
                                          "kernel32",     "mpr",      "msimg32",
                                          "mswsock",      "ncrypt",   "netapi32",
                                          "normaliz",     "ntdll",    "odbc32",
                                          "ole32",        "oleaut32", "opengl32",
                                          "pdh",          "powrprof", "propsys",
                                          "psapi",        "rpcrt4",   "secur32",
                                          "setupapi",     "shell32",  "shlwapi",
                                          "urlmon",       "user32",   "userenv",
                                          "usp10",        "uxtheme",  "version",
                                          "winhttp",      "wininet",  "winmm",
                                          "winspool.drv", "wintrust", "wldap32",
                                          "ws2_32",       "wsock32",  "wtsapi32"};
static const char *const runtime_dlls[] = {"ucrtbase",      "vcruntime", "msvcp",     "msvcr",
                                           "concrt",        "vcomp",     "libgcc_s_", "libstdc++-",
                                           "libwinpthread", "libomp",    "libiomp5md"};

static bool has_prefix(const char *name, const char *with)
{
    return strncasecmp(name, with, strlen(with)) == 0;
}

static bool has_suffix(const char *name, const char *with)
{
    const size_t n = strlen(name), m = strlen(with);

    return n >= m && strcasecmp(name + n - m, with) == 0;
}

/* Whether both name the same library; ".dll" may be omitted. */
static bool is_same_dll(const char *a, const char *b)
{
    const size_t n = strlen(a) - (has_suffix(a, ".dll") ? 4 : 0);

    return n == strlen(b) - (has_suffix(b, ".dll") ? 4 : 0) && strncasecmp(a, b, n) == 0;
}

/* "python311.dll", "python313t_d.dll": the build follows the digits. */
static enum kind kind_of_python(const char *name)
{
    static const char *const builds[] = {"", "_d", "t", "t_d"};
    size_t version;

    if (!has_prefix(name, "python3"))
        return OTHER;
    version = strspn(name + 7, "0123456789");
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++)
        if (is_same_dll(name + 7 + version, builds[i]))
            return version > 0 ? API : STABLE;
    return OTHER;
}

static enum kind kind_of(const char *name, const char *const *api)
{
    for (; api != NULL && *api != NULL; api++)
        if (is_same_dll(name, *api))
            return API;
    if (kind_of_python(name) != OTHER)
        return kind_of_python(name);
    if (has_prefix(name, "api-") || has_prefix(name, "ext-"))
        return API_SET;
    for (size_t i = 0; i < sizeof system_dlls / sizeof *system_dlls; i++)
        if (is_same_dll(name, system_dlls[i]))
            return SYSTEM;
    for (size_t i = 0; i < sizeof runtime_dlls / sizeof *runtime_dlls; i++)
        if (has_prefix(name, runtime_dlls[i]))
            return RUNTIME;
    return has_suffix(name, ".exe") ? PROGRAM : OTHER;
}

/* ---- what the file has of each --------------------------------------------------------------- */

struct uses {
    size_t by_name, by_number;
};

/* Counts the symbols imported from one library.  Imports are ordered by library, so counting starts
 * at *at and leaves it at the next library. */
static struct uses count_uses(const struct exti_image *im, size_t library, size_t *at)
{
    struct exti_symbol_info s = {.size = sizeof s};
    struct uses u = {0, 0};

    for (; exti_image_symbol(im, *at, &s) == 0; ++*at) {
        if ((s.flags & EXTI_SYM_EXPORT) != 0)
            continue;
        if (s.library > (int32_t)library + 1)
            break;
        if (s.ordinal != 0)
            u.by_number++;
        else
            u.by_name++;
    }
    return u;
}

/* Calls `each` with every library that exports are forwarded to and the number of exports. */
static void each_forward(const struct exti_image *im,
                         void (*each)(void *user, const char *library, size_t count), void *user)
{
    struct exti_symbol_info s = {.size = sizeof s};
    json_t *counts = json_object(), *count;
    const char *library;

    for (size_t i = 0; exti_image_symbol(im, i, &s) == 0; i++) {
        char *name = s.forward != NULL ? cli_copy_text(s.forward) : NULL;
        char *dot = name != NULL ? strrchr(name, '.') : NULL, *key = NULL;

        if (dot != NULL) {
            *dot = '\0';
            key = cli_safe(name);
        }

        if (key != NULL)
            json_object_set_new(counts, key,
                                json_integer(json_integer_value(json_object_get(counts, key)) + 1));
        free(key);
        free(name);
    }
    json_object_foreach(counts, library, count)
    {
        each(user, library, (size_t)json_integer_value(count));
    }
    json_decref(counts);
}

static bool imports_symbol(const struct exti_image *im, const char *name)
{
    struct exti_symbol_info s = {.size = sizeof s};

    for (size_t i = 0; exti_image_symbol(im, i, &s) == 0; i++)
        if ((s.flags & EXTI_SYM_EXPORT) == 0 && strcmp(s.name, name) == 0)
            return true;
    return false;
}

/* A statically linked C run-time library keeps per-thread data in a fiber-local slot, so the file
 * imports FlsAlloc and no C run-time library. */
static bool has_static_crt(const struct exti_image *im)
{
    const char *name;

    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++)
        if (has_prefix(name, "api-ms-win-crt-") || has_prefix(name, "ucrtbase") ||
            has_prefix(name, "msvcr") || has_prefix(name, "vcruntime"))
            return false;
    return imports_symbol(im, "FlsAlloc") ||
           exti_image_mention(im, "api-ms-win-core-fibers-l1-1-1", 0) != EXTI_NO_OFFSET;
}

static void add_mentions(json_t *all, const struct exti_image *im, const char *name)
{
    uint64_t at = 0;

    while ((at = exti_image_mention(im, name, at)) != EXTI_NO_OFFSET) {
        json_array_append_new(
            all, json_pack("{s:o, s:I}", "name", cli_json_text(name), "offset", (json_int_t)at));
        at++;
    }
}

json_t *cli_pe_mentions(const struct exti_image *im, const char *const *api)
{
    json_t *all = json_array(), *seen = json_array(), *one;
    const char *name;
    size_t k;

    for (; api != NULL && *api != NULL; api++)
        json_array_append_new(seen, json_string(*api));
    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++)
        if (kind_of(name, NULL) == API)
            json_array_append_new(seen, json_string(name));
    json_array_append_new(seen, json_string("python3.dll"));
    json_array_foreach(seen, k, one)
    {
        bool first = true;

        for (size_t j = 0; j < k; j++)
            first &=
                !is_same_dll(json_string_value(json_array_get(seen, j)), json_string_value(one));
        if (first)
            add_mentions(all, im, json_string_value(one));
    }
    json_decref(seen);
    return all;
}

json_t *cli_pe_mentions_in(const char *path, const char *const *api)
{
    struct exti_image *im = NULL;
    json_t *all = NULL;

    if (cli_magic_of(path) == CLI_MAGIC_PE && cli_worked(exti_inspect(path, &im, NULL)))
        all = cli_pe_mentions(im, api);
    exti_image_free(im);
    return all != NULL ? all : json_array();
}

/* ---- for people ------------------------------------------------------------------------------ */

static void print_imports(const struct exti_image *im, const char *const *api)
{
    const char *name;
    size_t i, symbol = 0;

    for (i = 0; (name = exti_image_needed(im, i)) != NULL; i++) {
        const struct uses u = count_uses(im, i, &symbol);
        enum kind kind = kind_of(name, api);

        cli_label(i == 0 ? "needed" : "");
        printf("%2zu  ", i + 1);
        cli_put(stdout, name);
        printf("%s: ", exti_image_needed_flags(im, i) & EXTI_NEED_WEAK ? " (late)" : "");
        if (u.by_name > 0 || u.by_number == 0)
            printf("%zu by name%s", u.by_name, u.by_number > 0 ? ", " : "");
        if (u.by_number > 0)
            printf("%zu by number", u.by_number);
        printf("; %s\n", kind == STABLE && u.by_number > 0 ? kinds[API].means : kinds[kind].means);
    }
    if (i == 0)
        cli_line("needed", NULL, "none");
}

struct printing {
    const char *const *api;
    bool any;
};

static void print_forward(void *user, const char *library, size_t count)
{
    struct printing *p = user;

    cli_label(p->any ? "" : "forwards");
    p->any = true;
    printf("%zu export%s to ", count, count == 1 ? "" : "s");
    cli_put(stdout, library);
    printf("; %s\n", kinds[kind_of(library, p->api)].means);
}

static void print_mentions(const struct exti_image *im, const char *const *api)
{
    json_t *all = cli_pe_mentions(im, api), *one;
    size_t i;

    json_array_foreach(all, i, one)
    {
        cli_label(i == 0 ? "mentions" : "");
        cli_put(stdout, json_string_value(json_object_get(one, "name")));
        printf(" at 0x%" PRIx64 "\n", (uint64_t)json_integer_value(json_object_get(one, "offset")));
    }
    json_decref(all);
}

static void print_flag(bool set, bool *any, const char *name, const char *means)
{
    if (!set)
        return;
    cli_label(*any ? "" : "flags");
    *any = true;
    printf("%s%s%s: %s\n", cli_style(stdout, CLI_YELLOW), name, cli_style(stdout, CLI_PLAIN),
           means);
}

void cli_pe_print_flags(const struct exti_image *im, const struct exti_image_info *info)
{
    bool any = false;

    print_flag((info->flags & EXTI_IMAGE_BOUND) != 0, &any, "bound imports",
               "addresses found in advance; cleared in copies");
    print_flag((info->flags & EXTI_IMAGE_FORCE_INTEGRITY) != 0, &any, "force integrity",
               "loads only if signed; cleared in copies");
    print_flag(info->load_flags != 0, &any, "dependent load flags",
               "limit where its libraries may lie; cleared in copies");
    print_flag(has_static_crt(im), &any, "static C run-time library",
               "each copy takes one of the process's FLS slots");
    if (!any)
        cli_line("flags", NULL, "none that matter here");
}

void cli_pe_print_libraries(const struct exti_image *im, const char *const *api)
{
    struct exti_image_info info = {.size = sizeof info};
    struct printing p = {.api = api};

    exti_image_info(im, &info);
    cli_line("id", info.id, "none; it exports nothing");
    print_imports(im, api);
    each_forward(im, print_forward, &p);
    print_mentions(im, api);
}

void cli_pe_print_layout(const struct exti_image_info *info)
{
    if (info->unfit != NULL) {
        cli_label("copies");
        printf("%snone%s: %s\n", cli_style(stdout, CLI_RED), cli_style(stdout, CLI_PLAIN),
               info->unfit);
    }
    cli_label("room");
    printf("%" PRIu64 " bytes for section headers\n", info->header_room);
    if (info->overlay_size != 0) {
        cli_label("overlay");
        printf("%" PRIu64 " bytes behind the sections, which a copy keeps\n", info->overlay_size);
    }
    cli_line("signed",
             info->signature != EXTI_SIGNATURE_NONE ? "a certificate's; a copy is not signed"
                                                    : NULL,
             "none");
    cli_label("loads");
    printf("%s\n", info->flags & EXTI_IMAGE_RELOCATABLE ? "at any address" : "at one address only");
}

/* ---- for programs ---------------------------------------------------------------------------- */

static json_t *imports_json(const struct exti_image *im, const char *const *api)
{
    json_t *all = json_array();
    const char *name;
    size_t symbol = 0;

    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++) {
        const struct uses u = count_uses(im, i, &symbol);

        json_array_append_new(
            all, json_pack("{s:o, s:s, s:b, s:I, s:I}", "library", cli_json_text(name), "kind",
                           kinds[kind_of(name, api)].key, "late",
                           (exti_image_needed_flags(im, i) & EXTI_NEED_WEAK) != 0, "by_name",
                           (json_int_t)u.by_name, "by_number", (json_int_t)u.by_number));
    }
    return all;
}

struct packing {
    const char *const *api;
    json_t *all;
};

static void pack_forward(void *user, const char *library, size_t count)
{
    struct packing *p = user;

    json_array_append_new(p->all, json_pack("{s:s, s:s, s:I}", "library", library, "kind",
                                            kinds[kind_of(library, p->api)].key, "exports",
                                            (json_int_t)count));
}

json_t *cli_pe_json(const struct exti_image *im, const char *const *api)
{
    struct exti_image_info info = {.size = sizeof info};
    struct packing p = {api, json_array()};

    exti_image_info(im, &info);
    each_forward(im, pack_forward, &p);
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:s, s:I, s:I, s:I, s:b, s:b, s:b, s:b}", "imports",
        imports_json(im, api), "forwards", p.all, "mentions", cli_pe_mentions(im, api), "unfit",
        cli_json_text(info.unfit), "signature",
        info.signature != EXTI_SIGNATURE_NONE ? "certificate" : "none", "overlay_size",
        (json_int_t)info.overlay_size, "header_room", (json_int_t)info.header_room, "load_flags",
        (json_int_t)info.load_flags, "relocatable", (info.flags & EXTI_IMAGE_RELOCATABLE) != 0,
        "bound", (info.flags & EXTI_IMAGE_BOUND) != 0, "force_integrity",
        (info.flags & EXTI_IMAGE_FORCE_INTEGRITY) != 0, "static_crt", has_static_crt(im));
}
