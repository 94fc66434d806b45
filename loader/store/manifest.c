#include "loader/store/manifest.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_text.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/fs_read.h"
#include "base/os/fs_replace.h"
#include "base/path.h"
#include "loader/resolve/stable_abi_name.h"

/* Format 1 had no needs: its copies shared all libraries but the API library. */
#define MANIFEST_FORMAT_FIRST 1
#define MANIFEST_FORMAT 2
#define MANIFEST_MAX ((size_t)256 << 20)

void exti__needs_free(struct exti_need *needs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        exti__free(needs[i].name);
        exti__free(needs[i].to);
        exti__free(needs[i].file);
    }
    exti__free(needs);
}

void exti__policy_clear(struct exti_manifest_policy *p)
{
    for (size_t i = 0; i < p->rule_count; i++)
        exti__free((char *)p->rules[i].glob);
    exti__free(p->rules);
    *p = (struct exti_manifest_policy){0};
}

void exti__entry_clear(struct exti_entry *e)
{
    exti__needs_free(e->needs, e->need_count);
    exti__free(e->source);
    exti__free(e->build_id);
    exti__free(e->source_name);
    exti__free(e->copy);
    exti__free(e->renames);
    exti__free(e->edits);
    exti__free(e->stable_abi_copy);
    *e = (struct exti_entry){0};
}

void exti__manifest_clear(struct exti_manifest *m)
{
    exti__entry_clear(&m->api);
    for (size_t i = 0; i < m->count; i++)
        exti__entry_clear(&m->entries[i]);
    exti__free(m->entries);
    exti__policy_clear(&m->policy);
    exti__free(m->search);
    *m = (struct exti_manifest){0};
}

/* ---- reading ---- */

static bool copy_member(json_t *o, const char *key, char **out)
{
    const char *s = json_string_value(json_object_get(o, key));

    *out = s ? exti__strdup(s) : NULL;
    return *out || !s;
}

/* Anyone may have edited the manifest: a copy's name must not lead out of the directory. */
static bool is_plain_name(const char *name)
{
    return name && name[0] != '.' && exti__path_is_plain_name(name) &&
           strlen(name) <= EXTI_FILE_NAME_MAX;
}

static bool is_absolute(const char *path)
{
    return path && exti__path_is_absolute(path);
}

/* A directory made on Windows is not a damaged one, which would be made anew; nor the other way
 * round. */
static bool is_of_another_system(const char *path)
{
    return path && !exti__path_is_absolute(path) &&
           (path[0] == '/' || (path[0] && path[1] == ':') || strncmp(path, "\\\\", 2) == 0);
}

/* EXTI_E_NOMEM if json_unpack_ex left that in `why`, else `code`. */
static int fail_json(struct exti_error *err, int code, const json_error_t *why, const char *says)
{
    if (json_error_code(why) == json_error_out_of_memory)
        return exti__fail_nomem(err);
    return exti__fail(err, code, EXTI_NO_OFFSET, "%s", says);
}

static int need_from_json(json_t *o, struct exti_need *n, struct exti_error *err)
{
    const char *to = json_string_value(json_object_get(o, "to"));
    const char *file = json_string_value(json_object_get(o, "file"));

    n->isolated = json_is_true(json_object_get(o, "isolated"));
    n->optional = json_is_true(json_object_get(o, "optional"));
    if (!json_is_string(json_object_get(o, "name")) || (file && !is_absolute(file)) ||
        (n->isolated && (!file || !is_plain_name(to))))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "an entry of \"needs\" lacks a member, or one is not valid");
    if (!copy_member(o, "name", &n->name) || !copy_member(o, "to", &n->to) ||
        !copy_member(o, "file", &n->file))
        return exti__fail_nomem(err);
    return 0;
}

static int needs_from_json(json_t *list, struct exti_entry *e, struct exti_error *err)
{
    size_t n = json_array_size(list);
    int rc = 0;

    e->needs = n ? exti__calloc(n, sizeof *e->needs) : NULL;
    if (n && !e->needs)
        return exti__fail_nomem(err);
    for (; e->need_count < n && !rc; e->need_count++)
        rc = need_from_json(json_array_get(list, e->need_count), &e->needs[e->need_count], err);
    return rc;
}

static int renames_from_json(json_t *o, struct exti_entry *e, struct exti_error *err)
{
    const char *from;
    json_t *to;

    json_object_foreach(o, from, to) if (!*from || !json_string_length(to)) return exti__fail(
        err, EXTI_E_FORMAT, EXTI_NO_OFFSET, "\"renames\" has an empty name");
    return json_object_size(o) ? exti__json_text(o, JSON_COMPACT, &e->renames, err) : 0;
}

/* See struct exti_entry: the edits that replace python3.dll all have the same copy in its place. */
static int stable_abi_copy_from_json(json_t *edits, struct exti_entry *e, struct exti_error *err)
{
    json_t *needed = json_object_get(edits, "needed");

    for (size_t i = 0; i < json_array_size(needed); i++) {
        json_t *o = json_array_get(needed, i);
        const char *from = json_string_value(json_object_get(o, "replace"));

        if (from && exti__stable_abi_name(from))
            return exti__copy_text(&e->stable_abi_copy, json_string_value(json_object_get(o, "by")),
                                   err);
    }
    return 0;
}

static int entry_from_json(json_t *o, struct exti_entry *e, struct exti_error *err)
{
    json_int_t size = 0, mtime = 0, inode = 0, copy_size = 0, copy_mtime = 0, generation = 0;
    json_int_t resolution = 0;
    int symbolic = 0, synced = 0, takes_api = 1;
    const char *boot = "";
    const char *source = json_string_value(json_object_get(o, "source"));
    json_t *edits = NULL;
    json_error_t why = {0};
    int rc;

    if (is_of_another_system(source))
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "was made on another operating system, for %s; use another directory",
                          source);
    if (json_unpack_ex(o, &why, 0, "{s:I,s:I,s:I,s:I,s:I,s:I,s?I,s:b,s?b,s:b,s:s,s:o}", "size",
                       &size, "mtime_ns", &mtime, "inode", &inode, "copy_size", &copy_size,
                       "copy_mtime_ns", &copy_mtime, "generation", &generation, "resolution",
                       &resolution, "symbolic", &symbolic, "takes_api", &takes_api, "synced",
                       &synced, "boot", &boot, "edits", &edits) ||
        !json_is_object(edits) || !is_absolute(source) ||
        !is_plain_name(json_string_value(json_object_get(o, "copy"))))
        return fail_json(err, EXTI_E_FORMAT, &why,
                         "the entry of a copy lacks a member, or one is not valid");
    e->id =
        (struct exti_file_id){.size = (uint64_t)size, .inode = (uint64_t)inode, .mtime_ns = mtime};
    e->copy_size = (uint64_t)copy_size;
    e->copy_mtime_ns = copy_mtime;
    e->generation = (unsigned)generation;
    e->resolution = (unsigned)resolution;
    e->takes_api = takes_api;
    e->symbolic = symbolic;
    e->synced = synced;
    snprintf(e->boot, sizeof e->boot, "%s", boot);
    rc = exti__json_text(edits, JSON_COMPACT | JSON_SORT_KEYS, &e->edits, err);
    if (!rc)
        rc = stable_abi_copy_from_json(edits, e, err);
    if (!rc)
        rc = needs_from_json(json_object_get(o, "needs"), e, err);
    if (!rc)
        rc = renames_from_json(json_object_get(o, "renames"), e, err);
    if (rc)
        return rc;
    if (!copy_member(o, "source", &e->source) || !copy_member(o, "copy", &e->copy) ||
        !copy_member(o, "build_id", &e->build_id) || !copy_member(o, "id", &e->source_name))
        return exti__fail_nomem(err);
    return 0;
}

static int entries_from_json(json_t *list, struct exti_manifest *m, struct exti_error *err)
{
    size_t n = json_array_size(list);

    for (size_t i = 0; i < n; i++) {
        struct exti_entry e = {0};
        int rc = entry_from_json(json_array_get(list, i), &e, err);

        if (!rc)
            rc = exti__manifest_put(m, &e, err);
        exti__entry_clear(&e);
        if (rc)
            return rc;
    }
    return 0;
}

/* As --closure spells them too. */
static const char *const closures[] = {[EXTI_CLOSURE_DEFAULT] = "",
                                       [EXTI_CLOSURE_ALL] = "all",
                                       [EXTI_CLOSURE_API] = "api",
                                       [EXTI_CLOSURE_NONE] = "none"};

const char *exti__closure_name(enum exti_closure closure)
{
    return closures[closure];
}

static int rule_from_json(json_t *o, struct exti_rule *r, struct exti_error *err)
{
    const char *share = json_string_value(json_object_get(o, "share"));
    const char *isolate = json_string_value(json_object_get(o, "isolate"));

    if (!share == !isolate)
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "a rule must have either \"share\" or \"isolate\"");
    *r = (struct exti_rule){exti__strdup(share ? share : isolate), share != NULL};
    return r->glob ? 0 : exti__fail_nomem(err);
}

static int policy_from_json(const char *closure, json_t *rules, struct exti_manifest_policy *p,
                            struct exti_error *err)
{
    size_t n = json_array_size(rules);
    int rc = 0;

    for (size_t i = EXTI_CLOSURE_ALL; i < sizeof closures / sizeof *closures; i++)
        if (strcmp(closures[i], closure) == 0)
            p->closure = (enum exti_closure)i;
    if (p->closure == EXTI_CLOSURE_DEFAULT)
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "\"closure\" is '%.32s', not all, api or none", closure);
    p->rules = n ? exti__calloc(n, sizeof *p->rules) : NULL;
    if (n && !p->rules)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < n && !rc; i++) {
        rc = rule_from_json(json_array_get(rules, i), &p->rules[i], err);
        p->rule_count += !rc;
    }
    return rc;
}

static int manifest_from_json(json_t *root, struct exti_manifest *m, struct exti_error *err)
{
    json_t *api = NULL, *copies = NULL, *rules = NULL;
    json_int_t format = 0, generation = 0, resolution = 0;
    const char *name = "", *file_format = "ELF", *machine = "", *closure = "none";
    int renamed = 0, bits = 0, big_endian = 0, rc;
    json_error_t why = {0};

    if (json_unpack_ex(root, &why, 0, "{s:I}", "extisolate", &format))
        return fail_json(err, EXTI_E_ARG, &why, "is not a manifest of extisolate");
    if (format < MANIFEST_FORMAT_FIRST || format > MANIFEST_FORMAT)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "has manifest format %d; this library reads up to %d", (int)format,
                          MANIFEST_FORMAT);
    if (json_unpack_ex(root, &why, 0, "{s:s,s:{s?s,s:s,s:i,s:b},s:b,s:I,s?s,s?o,s?I,s:o,s:o}",
                       "name", &name, "target", "format", &file_format, "machine", &machine, "bits",
                       &bits, "big_endian", &big_endian, "renamed", &renamed, "generation",
                       &generation, "closure", &closure, "rules", &rules, "resolution", &resolution,
                       "api", &api, "copies", &copies) ||
        !json_is_array(copies))
        return fail_json(err, EXTI_E_FORMAT, &why, "a member is missing or not valid");
    if (exti__context_name_check(name, NULL))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "\"name\" is not a valid context name");
    snprintf(m->name, sizeof m->name, "%s", name);
    m->target.format = exti__format_named(file_format);
    if (m->target.format == EXTI_FORMAT_NONE)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "is for %.64s files; this library reads ELF, Mach-O and PE", file_format);
    snprintf(m->target.machine, sizeof m->target.machine, "%s", machine);
    m->target.bits = bits;
    m->target.big_endian = big_endian;
    m->renamed = renamed;
    m->generation = (unsigned)generation;
    m->resolution = (unsigned)resolution;
    if (!copy_member(root, "search", &m->search))
        return exti__fail_nomem(err);
    rc = policy_from_json(closure, rules, &m->policy, err);
    if (!rc)
        rc = entry_from_json(api, &m->api, err);
    return rc ? rc : entries_from_json(copies, m, err);
}

int exti__manifest_read(const char *dir, struct exti_manifest *out, struct exti_error *err)
{
    struct exti_manifest m = {0};
    json_error_t json_err = {.text = ""};
    json_t *root = NULL;
    char *path = exti__path_join(dir, EXTI_MANIFEST_FILE), *text = NULL;
    size_t n;
    int rc;

    if (!path)
        return exti__fail_nomem(err);
    rc = exti__fs_read(path, MANIFEST_MAX, &text, &n, err);
    if (rc)
        goto out;
    root = json_loadb(text, n, JSON_REJECT_DUPLICATES, &json_err);
    if (root)
        rc = manifest_from_json(root, &m, err);
    else if (!json_err.text[0] || json_error_code(&json_err) == json_error_out_of_memory)
        rc = exti__fail_nomem(err);
    else
        rc = exti__fail(err, EXTI_E_FORMAT, (uint64_t)json_err.position, "is damaged: %s",
                        json_err.text);
out:
    if (rc)
        exti__error_file(err, path);
    json_decref(root);
    exti__free(text);
    exti__free(path);
    if (rc)
        exti__manifest_clear(&m);
    else
        *out = m;
    return rc;
}

/* ---- writing ---- */

int exti__manifest_check_text(const char *text, const char *what, struct exti_error *err)
{
    json_error_t why = {0};
    json_t *s = json_pack_ex(&why, 0, "s", text ? text : "");

    json_decref(s);
    if (s)
        return 0;
    if (json_error_code(&why) != json_error_invalid_utf8)
        return exti__fail_nomem(err);
    return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                      "its %s is not UTF-8, so the manifest cannot hold it", what);
}

/* Takes over `item`.  Releases the list and returns NULL when memory is out. */
static json_t *append_item(json_t *list, json_t *item)
{
    if (!list || !json_array_append_new(list, item))
        return list;
    json_decref(list);
    return NULL;
}

static json_t *needs_to_json(const struct exti_entry *e)
{
    json_t *list = json_array();

    for (size_t i = 0; i < e->need_count && list; i++) {
        const struct exti_need *n = &e->needs[i];

        json_t *o = json_pack("{s:s,s:b}", "name", n->name, "isolated", n->isolated);

        if (n->optional)
            o = exti__json_set(o, "optional", json_true());
        o = exti__json_set_text(o, "to", n->to);
        list = append_item(list, exti__json_set_text(o, "file", n->file));
    }
    return list;
}

static json_t *entry_to_json(const struct exti_entry *e)
{
    json_t *edits = json_loads(e->edits, 0, NULL), *o;

    if (!edits)
        return NULL;
    o = json_pack("{s:s,s:I,s:I,s:I,s:s,s:I,s:I,s:I,s:I,s:b,s:b,s:b,s:s,s:o,s:o}", "source",
                  e->source, "size", (json_int_t)e->id.size, "mtime_ns", (json_int_t)e->id.mtime_ns,
                  "inode", (json_int_t)e->id.inode, "copy", e->copy, "copy_size",
                  (json_int_t)e->copy_size, "copy_mtime_ns", (json_int_t)e->copy_mtime_ns,
                  "generation", (json_int_t)e->generation, "resolution", (json_int_t)e->resolution,
                  "symbolic", e->symbolic, "takes_api", e->takes_api, "synced", e->synced, "boot",
                  e->boot, "needs", needs_to_json(e), "edits", edits);
    o = exti__json_set_text(o, "build_id", e->build_id);
    if (e->renames)
        o = exti__json_set(o, "renames", json_loads(e->renames, 0, NULL));
    return exti__json_set_text(o, "id", e->source_name);
}

static json_t *rules_to_json(const struct exti_manifest_policy *p)
{
    json_t *list = json_array();

    for (size_t i = 0; i < p->rule_count && list; i++)
        list = append_item(
            list, json_pack("{s:s}", p->rules[i].share ? "share" : "isolate", p->rules[i].glob));
    return list;
}

static json_t *manifest_to_json(const struct exti_manifest *m)
{
    json_t *copies = json_array(), *api = entry_to_json(&m->api), *root;

    for (size_t i = 0; i < m->count && copies; i++)
        if (!m->entries[i].marks.unwritten)
            copies = append_item(copies, entry_to_json(&m->entries[i]));
    /* json_pack releases the objects it is given even when it fails. */
    root = json_pack("{s:i,s:s,s:{s:s,s:s,s:i,s:b},s:b,s:I,s:s,s:o,s:I,s:o,s:o}", "extisolate",
                     MANIFEST_FORMAT, "name", m->name, "target", "format",
                     exti__format_name(m->target.format), "machine", m->target.machine, "bits",
                     m->target.bits, "big_endian", m->target.big_endian, "renamed", m->renamed,
                     "generation", (json_int_t)m->generation, "closure",
                     exti__closure_name(m->policy.closure), "rules", rules_to_json(&m->policy),
                     "resolution", (json_int_t)m->resolution, "api", api, "copies", copies);
    return exti__json_set_text(root, "search", m->search);
}

int exti__manifest_write(const char *dir, const struct exti_manifest *m, bool sync,
                         struct exti_error *err)
{
    json_t *root = manifest_to_json(m);
    char *text = NULL, *path = exti__path_join(dir, EXTI_MANIFEST_FILE);
    int rc = path ? exti__json_text(root, JSON_INDENT(2), &text, err) : exti__fail_nomem(err);

    if (!rc)
        rc = exti__fs_replace(path, text, strlen(text), sync ? EXTI_FS_SYNC : 0, err);
    json_decref(root);
    exti__free(text);
    exti__free(path);
    return rc;
}

/* ---- entries ---- */

/* The index of `source` in the sorted entries, or where it belongs. */
static size_t entry_index(const struct exti_manifest *m, const char *source, bool *found)
{
    size_t lo = 0, hi = m->count;

    *found = false;
    while (lo < hi && !*found) {
        size_t mid = lo + (hi - lo) / 2;
        int order = strcmp(source, m->entries[mid].source);

        if (order == 0) {
            *found = true;
            lo = mid;
        } else if (order < 0) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return lo;
}

struct exti_entry *exti__manifest_find(struct exti_manifest *m, const char *source)
{
    bool found;
    size_t at = entry_index(m, source, &found);

    if (found)
        return &m->entries[at];
    return m->api.source && strcmp(m->api.source, source) == 0 ? &m->api : NULL;
}

const struct exti_entry *exti__manifest_find_copy(const struct exti_manifest *m, const char *copy)
{
    if (m->api.copy && strcmp(m->api.copy, copy) == 0)
        return &m->api;
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->entries[i].copy, copy) == 0)
            return &m->entries[i];
    return NULL;
}

int exti__manifest_reserve(struct exti_manifest *m, size_t more, struct exti_error *err)
{
    size_t cap = m->cap ? m->cap : 16;
    struct exti_entry *p;

    while (cap - m->count < more)
        cap *= 2;
    if (cap == m->cap)
        return 0;
    p = exti__realloc_array(m->entries, cap, sizeof *p);
    if (!p)
        return exti__fail_nomem(err);
    m->entries = p;
    m->cap = cap;
    return 0;
}

int exti__manifest_put(struct exti_manifest *m, struct exti_entry *e, struct exti_error *err)
{
    bool found;
    size_t at = entry_index(m, e->source, &found);

    if (found) {
        exti__entry_clear(&m->entries[at]);
    } else {
        int rc = exti__manifest_reserve(m, 1, err);

        if (rc)
            return rc;
        memmove(&m->entries[at + 1], &m->entries[at], (m->count - at) * sizeof *m->entries);
        m->count++;
    }
    m->entries[at] = *e;
    *e = (struct exti_entry){0};
    return 0;
}

void exti__manifest_take(struct exti_manifest *m, struct exti_entry *e, struct exti_entry *out)
{
    *out = *e;
    m->count--;
    memmove(e, e + 1, (size_t)(m->entries + m->count - e) * sizeof *e);
}
