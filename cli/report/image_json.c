/* What `inspect --json` prints about one file. */
#include "cli/report/image.h"

#include <stdlib.h>

#include "cli/find/format.h"
#include "cli/output/json.h"
#include "cli/output/text.h"
#include "cli/report/hazards.h"
#include "cli/report/pe.h"
#include "cli/report/symbols.h"

static const struct {
    uint32_t bit;
    const char *key;
} flags[] = {
    {EXTI_IMAGE_UNIQUE, "unique"},         {EXTI_IMAGE_NODELETE, "nodelete"},
    {EXTI_IMAGE_STATIC_TLS, "static_tls"}, {EXTI_IMAGE_TEXTREL, "textrel"},
    {EXTI_IMAGE_SYMBOLIC, "symbolic"},     {EXTI_IMAGE_BIND_NOW, "bind_now"},
    {EXTI_IMAGE_WITHHELD, "withheld"},     {EXTI_IMAGE_INTERP, "interp"},
    {EXTI_IMAGE_NODEFLIB, "nodeflib"},
};

static json_t *names_json(const struct cli_names *n)
{
    json_t *all = json_array();

    for (size_t i = 0; i < n->count; i++)
        json_array_append_new(all, cli_json_text(n->items[i]));
    return all;
}

static json_t *api_json(const struct exti_image *im, const struct cli_image_opts *o)
{
    struct cli_names imports = cli_api_symbols(im, &o->api, false),
                     exports = cli_api_symbols(im, &o->api, true);
    json_t *api = json_pack("{s:o, s:I, s:I}", "library", cli_json_text(o->api.path), "imported",
                            (json_int_t)imports.count, "exported", (json_int_t)exports.count);

    if (o->symbols) {
        json_object_set_new(api, "imports", names_json(&imports));
        json_object_set_new(api, "exports", names_json(&exports));
    }
    free(imports.items);
    free(exports.items);
    return api;
}

/* How many API symbols bind to each library. */
static json_t *bindings_json(const struct exti_image *im, const struct cli_image_opts *o)
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
        if ((n = cli_count_bound(im, &o->api, special[i].library)) != 0)
            json_object_set_new(bindings, special[i].key, json_integer((json_int_t)n));
    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++)
        if ((n = cli_count_bound(im, &o->api, (int32_t)i + 1)) != 0) {
            char *safe = cli_safe(name);

            json_object_set_new(bindings, safe, json_integer((json_int_t)n));
            free(safe);
        }
    return bindings;
}

static json_t *macho_json(const struct exti_image *im, const struct exti_image_info *info,
                          const struct cli_image_opts *o)
{
    static const char *const kinds[] = {"none", "linker", "adhoc", "identity"};
    json_t *paths = json_array();
    const char *path;

    for (size_t i = 0; (path = exti_image_path(im, i)) != NULL; i++)
        json_array_append_new(paths, cli_json_text(path));
    return json_pack("{s:b, s:o, s:o, s:I, s:s}", "bundle", (info->flags & EXTI_IMAGE_BUNDLE) != 0,
                     "rpaths", paths, "bindings", bindings_json(im, o), "header_room",
                     (json_int_t)info->header_room, "signature", kinds[info->signature]);
}

static json_t *image_json(const char *file, const struct exti_image *im,
                          const struct cli_image_opts *o)
{
    struct exti_image_info info = {.size = sizeof info};
    json_t *needed = json_array(), *set = json_object();
    const char *name;

    exti_image_info(im, &info);
    for (size_t i = 0; (name = exti_image_needed(im, i)) != NULL; i++)
        json_array_append_new(needed, cli_json_text(name));
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        json_object_set_new(set, flags[i].key, json_boolean((info.flags & flags[i].bit) != 0));
    json_t *all = json_pack(
        "{s:o, s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o}", "file",
        cli_json_text(file), "format", info.format, "machine", info.machine, "bits", info.bits,
        "byte_order", info.big_endian ? "big" : "little", "id", cli_json_text(info.id), "needed",
        needed, "rpath", cli_json_text(info.rpath), "runpath", cli_json_text(info.runpath),
        "build_id", cli_json_text(info.build_id), "api", api_json(im, o), "tls_size",
        (json_int_t)info.tls_size, "symbols", (json_int_t)info.symbol_count, "unique_symbols",
        (json_int_t)cli_count_unique(im), "flags", set);
    if (!cli_is_macho(im) && !cli_is_pe(im)) {
        json_object_set_new(all, "shared_size", json_integer((json_int_t)info.shared_size));
        json_object_set_new(all, "full", cli_json_text(info.full));
    }
    json_object_set_new(all, "hazards", cli_hazards_json(im, o->contexts));
    if (cli_is_macho(im))
        json_object_update_new(all, macho_json(im, &info, o));
    if (cli_is_pe(im))
        json_object_update_new(all, cli_pe_json(im, cli_api_libraries(&o->api)));
    return all;
}

json_t *cli_image_json(const char *file, const struct exti_image *im,
                       const struct cli_image_opts *o)
{
    json_t *all = image_json(file, im, o), *slices = json_array();
    const struct exti_image *slice;

    for (size_t i = 0; (slice = exti_image_slice(im, i)) != NULL; i++) {
        json_t *one = image_json(file, slice, o);

        json_object_del(one, "file");
        json_array_append_new(slices, one);
    }
    if (json_array_size(slices) > 0)
        json_object_set(all, "slices", slices);
    json_decref(slices);
    return all;
}
