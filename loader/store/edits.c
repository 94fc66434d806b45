#include "loader/store/edits.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "base/path.h"
#include "loader/image/exports.h"
#include "loader/resolve/dll_name.h"
#include "loader/resolve/stable_abi_name.h"
#include "loader/store/manifest_api.h"
#include "loader/store/stable_abi.h"

/* Edits of every copy, so that it can be unloaded (no DF_1_NODELETE) and shares no symbol with
 * other copies (no STB_GNU_UNIQUE).  `id` NULL: the copy keeps its own. */
static int common_edits(const char *source, const char *id,
                        const struct exti_private_symbols *renames, struct exti_edits *e,
                        struct exti_error *err)
{
    char *slash;

    *e = (struct exti_edits){.opts.size = sizeof e->opts, .origin = exti__strdup(source)};
    if (!e->origin)
        return exti__fail_nomem(err);
    slash = exti__path_last_slash(e->origin);
    if (slash)
        slash[slash == e->origin] = 0;
    if (id) {
        snprintf(e->id, sizeof e->id, "%s", id);
        e->opts.id = e->id;
    }
    e->opts.origin = e->origin;
    e->opts.flags = EXTI_RW_CLEAR_NODELETE | EXTI_RW_CLEAR_UNIQUE;
    e->opts.renames = renames->renames;
    e->opts.rename_count = renames->count;
    return 0;
}

static int add_needed(struct exti_edits *e, const char *from, const char *to,
                      enum exti_needed_where where, struct exti_error *err)
{
    struct exti_needed *p =
        exti__array_room(e->needed, e->opts.needed_count, &e->needed_cap, sizeof *p);

    if (!p)
        return exti__fail_nomem(err);
    e->opts.needed = e->needed = p;
    p[e->opts.needed_count++] = (struct exti_needed){from, to, where};
    return 0;
}

/* Each reference of a Mach-O copy names the library that it binds to, so private names are not
 * needed.  A bundle has no install name; giving it one has no effect. */
static int macho_edits(const struct exti_manifest *m, const char *source, const char *copy,
                       size_t room, struct exti_edits *e, struct exti_error *err)
{
    static const struct exti_private_symbols none;
    char id[EXTI_FILE_NAME_MAX + 1];

    if (m->renamed)
        return exti__fail(
            err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
            "private names are for ELF; omit --rename: Mach-O references name their library");
    exti__copy_name_install(m->name, copy, room, id);
    return common_edits(source, id, &none, e, err);
}

static bool is_macho(const struct exti_image *im)
{
    return im->format == EXTI_FORMAT_MACHO;
}

/* Imports name the API copy's file without a folder: the loader takes the one that is loaded
 * already.  `id` NULL, for a copy that nothing imports from: no loader reads its id, so it keeps
 * its own. */
static int pe_edits(const struct exti_manifest *m, const char *source, const char *id,
                    const struct exti_image *im, struct exti_edits *e, struct exti_error *err)
{
    static const struct exti_private_symbols none;

    if (im->info.unfit)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET, "%s", im->info.unfit);
    if (id && !exti__copy_name_pe_fits(id))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "its copy cannot be called '%s': imports and forwarders need a name with "
                          "one dot, and not python and digits, api- or ext-",
                          id);
    if (m->renamed)
        return exti__fail(
            err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
            "private names are for ELF; omit --rename: PE imports name their library");
    return common_edits(source, id, &none, e, err);
}

static bool is_pe(const struct exti_image *im)
{
    return im->format == EXTI_FORMAT_PE;
}

static int add_pe_rename(const char *from, const char *to, struct exti_edits *e,
                         struct exti_error *err)
{
    for (size_t i = 0; i < e->opts.needed_count; i++)
        if (exti__same_dll(e->needed[i].from, from))
            return 0;
    return add_needed(e, from, to, EXTI_NEEDED_LAST, err);
}

/* Needed libraries that are copied too are imported from their copies, which are in the same
 * folder. */
static int add_pe_needs(const struct exti_entry *entry, struct exti_edits *e,
                        struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < entry->need_count && !rc; i++)
        if (entry->needs[i].to)
            rc = add_pe_rename(entry->needs[i].name, entry->needs[i].to, e, err);
    return rc;
}

/* Forwarders may lead to the library itself by its own name, which the copy does not have. */
static int pe_api_edits(const struct exti_manifest *m, const struct exti_entry *entry,
                        const struct exti_image *im, struct exti_edits *e, struct exti_error *err)
{
    const char *own[] = {im->info.id ? im->info.id : "", exti__base_name(entry->source)};
    const char *copy = entry->copy;
    int rc = pe_edits(m, entry->source, copy, im, e, err);

    for (size_t i = 0; !rc && i < im->info.symbol_count; i++) {
        char library[EXTI_FILE_NAME_MAX + 1];

        if (!exti__is_forwarder(&im->symbols[i], library))
            continue;
        for (size_t k = 0; !rc && k < sizeof own / sizeof *own; k++)
            if (exti__same_dll(library, own[k]))
                rc = add_pe_rename(own[k], copy, e, err);
    }
    return rc ? rc : add_pe_needs(entry, e, err);
}

/* Whether an edit that replaces all entries of that name is there already. */
static bool has_edit_for(const struct exti_edits *e, const char *name)
{
    for (size_t i = 0; i < e->opts.needed_count; i++)
        if (e->needed[i].from && strcmp(e->needed[i].from, name) == 0)
            return true;
    return false;
}

/* Needed libraries that are copied too lie in the same folder. */
static int point_at_needs(const struct exti_entry *entry, struct exti_edits *e,
                          struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; i < entry->need_count && !rc; i++) {
        const struct exti_need *n = &entry->needs[i];

        if (n->isolated)
            e->opts.path_prepend = "$ORIGIN";
        if (n->to && !has_edit_for(e, n->name))
            rc = add_needed(e, n->name, n->to, EXTI_NEEDED_LAST, err);
    }
    return rc;
}

/* All copies lie in one folder, and dyld finds a library there only by its path. */
static char *beside(const char *copy)
{
    static const char folder[] = "@loader_path/";
    char *name = exti__alloc(sizeof folder + strlen(copy));

    if (name)
        snprintf(name, sizeof folder + strlen(copy), "%s%s", folder, copy);
    return name;
}

static int point_at_macho_needs(const struct exti_entry *entry, struct exti_edits *e,
                                struct exti_error *err)
{
    int rc = 0;

    e->names = exti__calloc(entry->need_count + 1, sizeof *e->names);
    if (!e->names)
        return exti__fail_nomem(err);
    for (size_t i = 0, n = 0; i < entry->need_count && !rc; i++) {
        const struct exti_need *need = &entry->needs[i];

        if (!need->to || has_edit_for(e, need->name))
            continue;
        e->names[n] = need->isolated ? beside(need->to) : exti__strdup(need->to);
        rc = e->names[n] ? add_needed(e, need->name, e->names[n], EXTI_NEEDED_LAST, err)
                         : exti__fail_nomem(err);
        n++;
    }
    return rc;
}

static int api_edits(const struct exti_manifest *m, const struct exti_entry *e,
                     const struct exti_image *im, const struct exti_private_symbols *renames,
                     struct exti_edits *out, struct exti_error *err)
{
    char id[EXTI_FILE_NAME_MAX + 1];
    int rc;

    if (is_macho(im)) {
        rc = macho_edits(m, e->source, e->copy, 0, out, err);
        if (!rc)
            out->opts.flags |= EXTI_RW_SYMBOLIC;
        return rc ? rc : point_at_macho_needs(e, out, err);
    }
    if (is_pe(im))
        return pe_api_edits(m, e, im, out, err);
    exti__copy_name_api_id(im->info.id, e->copy, id);
    rc = common_edits(e->source, id, renames, out, err);
    if (!rc && m->renamed)
        out->opts.flags |= EXTI_RW_SYMBOLIC;
    return rc ? rc : point_at_needs(e, out, err);
}

/* The API copy takes the place of the API library in the list of needed libraries.  A file
 * without the API library in that list gets the copy where `where` says. */
static int point_at_api(const struct exti_manifest *m, const struct exti_image *im,
                        const char *name, enum exti_needed_where where, struct exti_edits *e,
                        struct exti_error *err)
{
    const bool is_elf = !is_macho(im);
    const struct exti_image *part;
    bool all = true;
    int rc = 0;

    for (size_t k = 0; (part = exti__image_part(im, k)); k++) {
        bool there = false;

        for (size_t i = 0; i < part->info.needed_count && !rc; i++) {
            const char *from = part->needed[i].name;

            if (!exti__manifest_is_api(m, from))
                continue;
            there = true;
            /* In ELF one entry will do.  Elsewhere references belong to a certain entry. */
            if (!has_edit_for(e, from))
                rc = add_needed(e, from, e->opts.needed_count && is_elf ? NULL : name, where, err);
        }
        all = all && there;
    }
    return rc || all ? rc : add_needed(e, NULL, name, where, err);
}

/* The API copy lies in the same folder.  It goes last in the list, so that no library ordinal
 * changes. */
static int macho_copy_edits(const struct exti_manifest *m, const struct exti_entry *entry,
                            const struct exti_image *im, struct exti_edits *e,
                            struct exti_error *err)
{
    int rc =
        macho_edits(m, entry->source, entry->copy, im->info.id ? strlen(im->info.id) : 0, e, err);

    if (rc)
        return rc;
    e->opts.flags |= EXTI_RW_SYMBOLIC;
    if (!entry->takes_api)
        return point_at_macho_needs(entry, e, err);
    snprintf(e->bind_name, sizeof e->bind_name, "@loader_path/%s", m->api.copy);
    exti__copy_name_install(m->name, m->api.copy, 0, e->bind_short);
    e->opts.bind_file = m->api.source;
    e->opts.bind_name = e->bind_name;
    e->opts.bind_short = e->bind_short;
    rc = point_at_api(m, im, e->bind_name, EXTI_NEEDED_LAST, e, err);
    return rc ? rc : point_at_macho_needs(entry, e, err);
}

/* The name to put in place of `name` in imports and forwarders; NULL: keep it.  `own_stable`:
 * the copy imports from the context's python3.dll. */
static const char *pe_target(const struct exti_manifest *m, const char *name, bool own_stable)
{
    if (own_stable && exti__manifest_is_stable_abi(m, name))
        return exti__manifest_stable_abi(m)->copy;
    return exti__manifest_is_api(m, name) ? m->api.copy : NULL;
}

/* A long-lived string for `name`, a name of the API library or python3.dll that was cut from a
 * forwarder. */
static const char *pe_lasting_name(const struct exti_manifest *m, const char *name)
{
    const char *id = m->api.source_name ? exti__base_name(m->api.source_name) : "";
    const char *base = exti__base_name(m->api.source);

    return exti__same_dll(name, id)     ? id
           : exti__same_dll(name, base) ? base
                                        : exti__stable_abi_name(name);
}

/* A file that imports nothing from the API library gets no edits from this. */
static int add_pe_renames(const struct exti_manifest *m, const struct exti_image *im,
                          bool own_stable, struct exti_edits *e, struct exti_error *err)
{
    const char *to;
    int rc = 0;

    for (size_t i = 0; !rc && i < im->info.needed_count; i++)
        if ((to = pe_target(m, im->needed[i].name, own_stable)))
            rc = add_pe_rename(im->needed[i].name, to, e, err);
    for (size_t i = 0; !rc && i < im->info.symbol_count; i++) {
        char library[EXTI_FILE_NAME_MAX + 1];

        if (exti__is_forwarder(&im->symbols[i], library) &&
            (to = pe_target(m, library, own_stable)))
            rc = add_pe_rename(pe_lasting_name(m, library), to, e, err);
    }
    return rc;
}

/* The copy of python3.dll gets an id: its importers name it. */
static int pe_stable_edits(const struct exti_manifest *m, const char *source, const char *copy,
                           const struct exti_image *im, struct exti_edits *e,
                           struct exti_error *err)
{
    int rc = exti__stable_abi_check(m, im, err);

    if (!rc)
        rc = pe_edits(m, source, copy, im, e, err);
    return rc ? rc : add_pe_renames(m, im, false, e, err);
}

/* See stable_abi.h for importers of python3.dll.  The bind_* options make the rewrite refuse a
 * file whose imports from the API cannot all be seen, and so not redirected. */
static int pe_copy_edits(const struct exti_manifest *m, const struct exti_entry *entry,
                         const struct exti_image *im, struct exti_edits *e, struct exti_error *err)
{
    const char *source = entry->source, *wanted;
    bool own_stable;
    int rc;

    if (exti__manifest_is_stable_abi(m, exti__base_name(source)))
        return pe_stable_edits(m, source, entry->copy, im, e, err);
    rc = exti__stable_abi_wanted(m, im, &wanted, err);
    own_stable = !rc && wanted;
    if (!rc && own_stable && !exti__manifest_stable_abi(m))
        rc = exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                        "needs a copy of python3.dll, which the context does not have");
    if (!rc && own_stable)
        rc = exti__stable_abi_check_user(m, im, err);
    if (!rc)
        rc = pe_edits(m, source, NULL, im, e, err);
    if (!rc)
        rc = add_pe_renames(m, im, own_stable, e, err);
    if (!rc)
        rc = add_pe_needs(entry, e, err);
    if (rc)
        return rc;
    e->opts.bind_file = m->api.source;
    e->opts.bind_name = m->api.copy;
    return 0;
}

static int copy_edits(const struct exti_manifest *m, const struct exti_entry *e,
                      const struct exti_image *im, const struct exti_private_symbols *renames,
                      struct exti_edits *out, struct exti_error *err)
{
    int rc;

    if (is_macho(im))
        return macho_copy_edits(m, e, im, out, err);
    if (is_pe(im))
        return pe_copy_edits(m, e, im, out, err);
    rc = common_edits(e->source, e->copy, renames, out, err);
    if (rc)
        return rc;
    if (e->symbolic)
        out->opts.flags |= EXTI_RW_SYMBOLIC;
    if (e->takes_api) {
        out->opts.path_prepend = "$ORIGIN";
        /* First in the list, so that no other needed library can define the API's symbols before
         * it. */
        rc = point_at_api(m, im, m->api.copy, EXTI_NEEDED_FIRST, out, err);
    }
    return rc ? rc : point_at_needs(e, out, err);
}

/* Adds the entry's own renames (a quirk's), which win over the map's for the same symbols.  A
 * symbol renamed to one of the API's gets that one's private name. */
static int add_renames(const struct exti_entry *e, const struct exti_private_symbols *map,
                       struct exti_edits *out, struct exti_error *err)
{
    size_t n = 0;
    int rc;

    if (!e->renames)
        return 0;
    rc = exti__json_read(e->renames, strlen(e->renames), "\"renames\": ", &out->own, err);
    if (rc)
        return rc;
    out->renames = exti__realloc_array(NULL, out->opts.rename_count + out->own->count + 1,
                                       sizeof *out->renames);
    if (!out->renames)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < out->opts.rename_count; i++)
        if (!exti__json_get(out->own, out->opts.renames[i].from))
            out->renames[n++] = out->opts.renames[i];
    for (size_t i = 0; i < out->own->count; i++) {
        const char *from = out->own->items[i].name, *to = out->own->items[i].text;

        if (out->opts.rename_count && exti__private_symbol_find(map, to))
            to = exti__private_symbol_find(map, to);
        out->renames[n++] = (struct exti_rename){from, to};
    }
    out->opts.renames = out->renames;
    out->opts.rename_count = n;
    return 0;
}

int exti__edits_api(const struct exti_manifest *m, const struct exti_entry *e,
                    const struct exti_image *im, const struct exti_private_symbols *renames,
                    struct exti_edits *out, struct exti_error *err)
{
    int rc = api_edits(m, e, im, renames, out, err);

    if (e->withheld)
        out->opts.flags |= EXTI_RW_WITHHOLD;
    return rc ? rc : add_renames(e, renames, out, err);
}

int exti__edits_copy(const struct exti_manifest *m, const struct exti_entry *e,
                     const struct exti_image *im, const struct exti_private_symbols *renames,
                     struct exti_edits *out, struct exti_error *err)
{
    int rc = copy_edits(m, e, im, renames, out, err);

    if (e->withheld)
        out->opts.flags |= EXTI_RW_WITHHOLD;
    return rc ? rc : add_renames(e, renames, out, err);
}

void exti__edits_free(struct exti_edits *e)
{
    exti__free(e->origin);
    exti__free(e->needed);
    exti__free(e->renames);
    for (size_t i = 0; e->names && e->names[i]; i++)
        exti__free(e->names[i]);
    exti__free(e->names);
    exti__json_free(e->own);
    *e = (struct exti_edits){0};
}

static void put_needed(struct exti_json_writer *w, const struct exti_needed *n)
{
    exti__json_open(w, NULL, '{');
    if (!n->from) {
        exti__json_put_string(w, "add", n->to);
        exti__json_put_string(w, "where", n->where == EXTI_NEEDED_FIRST ? "first" : "last");
    } else if (n->to) {
        exti__json_put_string(w, "by", n->to);
        exti__json_put_string(w, "replace", n->from);
    } else {
        exti__json_put_string(w, "remove", n->from);
    }
    exti__json_close(w, '{');
}

static void put_optional_name(struct exti_json_writer *w, const char *key, const char *name)
{
    if (name)
        exti__json_put_string(w, key, name);
}

/* The members are in the order of their names, so that the text that a manifest's reader makes of
 * them is the same. */
int exti__edits_json(const struct exti_edits *e, char **out, struct exti_error *err)
{
    const struct exti_rewrite_opts *o = &e->opts;
    const size_t own = exti__json_count(e->own, EXTI_JSON_OBJECT);
    struct exti_json_writer w = exti__json_writer(EXTI_JSON_SORTED);

    exti__json_open(&w, NULL, '{');
    put_optional_name(&w, "bind_to", o->bind_name);
    exti__json_put_boolean(&w, "clear_nodelete", (o->flags & EXTI_RW_CLEAR_NODELETE) != 0);
    exti__json_put_boolean(&w, "clear_unique", (o->flags & EXTI_RW_CLEAR_UNIQUE) != 0);
    put_optional_name(&w, "id", o->id);
    exti__json_open(&w, "needed", '[');
    for (size_t i = 0; i < o->needed_count; i++)
        put_needed(&w, &o->needed[i]);
    exti__json_close(&w, '[');
    exti__json_put_string(&w, "origin", o->origin);
    exti__json_put_integer(&w, "private_names", (int64_t)(o->rename_count - own));
    if (e->own)
        exti__json_put_value(&w, "renamed", e->own);
    put_optional_name(&w, "search_path_prepend", o->path_prepend);
    exti__json_put_boolean(&w, "symbolic", (o->flags & EXTI_RW_SYMBOLIC) != 0);
    exti__json_put_boolean(&w, "withhold", (o->flags & EXTI_RW_WITHHOLD) != 0);
    exti__json_close(&w, '{');
    return exti__json_end(&w, out, err);
}
