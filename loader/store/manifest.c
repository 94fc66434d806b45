#include "loader/store/manifest.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"
#include "base/os/fs_read.h"
#include "base/path.h"
#include "base/shareable.h"
#include "loader/resolve/stable_abi_name.h"

/* Format 1 had no needs: its copies shared all libraries but the API library.  Format 2 had no lean
 * copies, whose code is not in their files, those of format 3 had their data, and those of format 4
 * their debug sections.  Members that an earlier version can do without, as those of a copy's
 * identity, do not change the format: that version drops them when it writes, and copies without
 * them are made again. */
#define MANIFEST_FORMAT_FIRST 1
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

static int copy_member(const struct exti_json *o, const char *key, char **out,
                       struct exti_error *err)
{
    return exti__copy_text(out, exti__json_string(o, key), err);
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

static int need_from_json(const struct exti_json *o, struct exti_need *n, struct exti_error *err)
{
    const char *to = exti__json_string(o, "to"), *file = exti__json_string(o, "file");
    int rc;

    exti__json_boolean(o, "isolated", &n->isolated);
    exti__json_boolean(o, "optional", &n->optional);
    if (!exti__json_string(o, "name") || (file && !is_absolute(file)) ||
        (n->isolated && (!file || !is_plain_name(to))))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "an entry of \"needs\" lacks a member, or one is not valid");
    rc = copy_member(o, "name", &n->name, err);
    if (!rc)
        rc = copy_member(o, "to", &n->to, err);
    return rc ? rc : copy_member(o, "file", &n->file, err);
}

static int needs_from_json(const struct exti_json *list, struct exti_entry *e,
                           struct exti_error *err)
{
    size_t n = exti__json_count(list, EXTI_JSON_ARRAY);
    int rc = 0;

    e->needs = n ? exti__calloc(n, sizeof *e->needs) : NULL;
    if (n && !e->needs)
        return exti__fail_nomem(err);
    for (; e->need_count < n && !rc; e->need_count++)
        rc = need_from_json(&list->items[e->need_count], &e->needs[e->need_count], err);
    return rc;
}

static int renames_from_json(const struct exti_json *o, struct exti_entry *e,
                             struct exti_error *err)
{
    size_t n = exti__json_count(o, EXTI_JSON_OBJECT);

    for (size_t i = 0; i < n; i++)
        if (!*o->items[i].name || !exti__json_count(&o->items[i], EXTI_JSON_STRING))
            return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET, "\"renames\" has an empty name");
    return n ? exti__json_text(o, EXTI_JSON_COMPACT, &e->renames, err) : 0;
}

/* See struct exti_entry: the edits that replace python3.dll all have the same copy in its place. */
static int stable_abi_copy_from_json(const struct exti_json *edits, struct exti_entry *e,
                                     struct exti_error *err)
{
    const struct exti_json *needed = exti__json_get(edits, "needed");

    for (size_t i = 0; i < exti__json_count(needed, EXTI_JSON_ARRAY); i++) {
        const struct exti_json *o = &needed->items[i];
        const char *from = exti__json_string(o, "replace");

        if (from && exti__stable_abi_name(from))
            return copy_member(o, "by", &e->stable_abi_copy, err);
    }
    return 0;
}

/* Whether a member is missing or an integer. */
static bool optional_integer(const struct exti_json *o, const char *name, int64_t *out)
{
    return !exti__json_get(o, name) || exti__json_integer(o, name, out);
}

static int identity_from_json(const struct exti_json *o, struct exti_entry *e,
                              struct exti_error *err)
{
    const char *hash = exti__json_string(o, "copy_sha256");
    int64_t inode = 0, device = 0;

    if (!optional_integer(o, "copy_inode", &inode) ||
        !optional_integer(o, "copy_device", &device) ||
        !optional_integer(o, "copy_ctime_ns", &e->copy_id.ctime_ns) ||
        (!hash && exti__json_get(o, "copy_sha256")))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "a member of a copy's identity is not valid");
    e->copy_id.inode = (uint64_t)inode;
    e->copy_id.device = (uint64_t)device;
    snprintf(e->copy_hash, sizeof e->copy_hash, "%s", hash ? hash : "");
    return 0;
}

/* Members that later versions added may be missing. */
static bool has_valid_facts(const struct exti_json *o, struct exti_entry *e)
{
    int64_t size, inode, copy_size, generation, resolution = 0;
    const char *boot = exti__json_string(o, "boot");

    e->takes_api = true;
    if (!exti__json_integer(o, "size", &size) ||
        !exti__json_integer(o, "mtime_ns", &e->id.mtime_ns) ||
        !exti__json_integer(o, "inode", &inode) ||
        !exti__json_integer(o, "copy_size", &copy_size) ||
        !exti__json_integer(o, "copy_mtime_ns", &e->copy_id.mtime_ns) ||
        !exti__json_integer(o, "generation", &generation) ||
        !exti__json_boolean(o, "symbolic", &e->symbolic) ||
        !exti__json_boolean(o, "synced", &e->synced) || !boot ||
        !optional_integer(o, "resolution", &resolution) ||
        (exti__json_get(o, "takes_api") && !exti__json_boolean(o, "takes_api", &e->takes_api)) ||
        (exti__json_get(o, "withheld") && !exti__json_boolean(o, "withheld", &e->withheld)))
        return false;
    e->id.size = (uint64_t)size;
    e->id.inode = (uint64_t)inode;
    e->copy_id.size = (uint64_t)copy_size;
    e->generation = (unsigned)generation;
    e->resolution = (unsigned)resolution;
    snprintf(e->boot, sizeof e->boot, "%s", boot);
    return true;
}

/* Each part is a pair of an offset and a size, which begins where the one before ends or later. */
static bool part_from_json(const struct exti_json *pair, size_t from, struct exti_range *out)
{
    if (exti__json_count(pair, EXTI_JSON_ARRAY) != 2)
        return false;
    for (size_t i = 0; i < 2; i++)
        if (!exti__json_is(&pair->items[i], EXTI_JSON_INTEGER) || pair->items[i].integer < 0 ||
            (uint64_t)pair->items[i].integer > EXTI_MAX_INPUT)
            return false;
    *out = (struct exti_range){(size_t)pair->items[0].integer, (size_t)pair->items[1].integer};
    return out->at >= from;
}

static int parts_from_json(const struct exti_json *entry, const char *name, struct exti_unread *out,
                           struct exti_error *err)
{
    const struct exti_json *list = exti__json_get(entry, name);
    const size_t n = exti__json_count(list, EXTI_JSON_ARRAY);
    bool valid = n && n <= EXTI_UNREAD_MAX;
    size_t end = 0;

    out->count = 0;
    if (!list)
        return 0;
    for (size_t i = 0; valid && i < n; i++) {
        valid = part_from_json(&list->items[i], end, &out->part[i]);
        end = out->part[i].at + out->part[i].n;
    }
    out->count = valid ? n : 0;
    return valid ? 0
                 : exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                              "\"%s\" is no list of 1 to %d pairs of offset and size", name,
                              EXTI_UNREAD_MAX);
}

static int unread_from_json(const struct exti_json *o, struct exti_entry *e, struct exti_error *err)
{
    struct exti_unread loaded;
    int rc = parts_from_json(o, "left_out", &e->left_out, err);

    if (!rc)
        rc = parts_from_json(o, "unloaded", &e->unloaded, err);
    if (rc)
        return rc;
    loaded = e->left_out;
    exti__parts_drop(&loaded, &e->unloaded);
    return loaded.count + e->unloaded.count == e->left_out.count &&
                   (loaded.count || !e->unloaded.count)
               ? 0
               : exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                            "\"unloaded\" is no list of some, but not all, parts of \"left_out\"");
}

static int entry_from_json(const struct exti_json *o, struct exti_entry *e, struct exti_error *err)
{
    const struct exti_json *edits = exti__json_get(o, "edits");
    const char *source = exti__json_string(o, "source");
    int rc;

    if (is_of_another_system(source))
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "was made on another operating system, for %s; use another directory",
                          source);
    if (!has_valid_facts(o, e) || !exti__json_is(edits, EXTI_JSON_OBJECT) || !is_absolute(source) ||
        !is_plain_name(exti__json_string(o, "copy")))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "the entry of a copy lacks a member, or one is not valid");
    rc = identity_from_json(o, e, err);
    if (!rc)
        rc = exti__json_text(edits, EXTI_JSON_SORTED, &e->edits, err);
    if (!rc)
        rc = stable_abi_copy_from_json(edits, e, err);
    if (!rc)
        rc = needs_from_json(exti__json_get(o, "needs"), e, err);
    if (!rc)
        rc = renames_from_json(exti__json_get(o, "renames"), e, err);
    if (!rc)
        rc = unread_from_json(o, e, err);
    if (!rc)
        rc = copy_member(o, "source", &e->source, err);
    if (!rc)
        rc = copy_member(o, "copy", &e->copy, err);
    if (!rc)
        rc = copy_member(o, "build_id", &e->build_id, err);
    return rc ? rc : copy_member(o, "id", &e->source_name, err);
}

static int entries_from_json(const struct exti_json *list, struct exti_manifest *m,
                             struct exti_error *err)
{
    for (size_t i = 0; i < list->count; i++) {
        struct exti_entry e = {0};
        int rc = entry_from_json(&list->items[i], &e, err);

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

static int rule_from_json(const struct exti_json *o, struct exti_rule *r, struct exti_error *err)
{
    const char *share = exti__json_string(o, "share"), *isolate = exti__json_string(o, "isolate");

    if (!share == !isolate)
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "a rule must have either \"share\" or \"isolate\"");
    *r = (struct exti_rule){exti__strdup(share ? share : isolate), share != NULL};
    return r->glob ? 0 : exti__fail_nomem(err);
}

static int policy_from_json(const char *closure, const struct exti_json *rules,
                            struct exti_manifest_policy *p, struct exti_error *err)
{
    size_t n = exti__json_count(rules, EXTI_JSON_ARRAY);
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
        rc = rule_from_json(&rules->items[i], &p->rules[i], err);
        p->rule_count += !rc;
    }
    return rc;
}

static int format_from_json(const struct exti_json *root, struct exti_error *err)
{
    int64_t format;

    if (!exti__json_integer(root, "extisolate", &format))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "is not a manifest of extisolate");
    if (format < MANIFEST_FORMAT_FIRST || format > EXTI_MANIFEST_FORMAT)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "has manifest format %d; this library reads up to %d", (int)format,
                          EXTI_MANIFEST_FORMAT);
    return 0;
}

static int target_from_json(const struct exti_json *o, struct exti_target *target,
                            struct exti_error *err)
{
    const char *format = exti__json_string(o, "format"), *machine = exti__json_string(o, "machine");
    int64_t bits;

    if (!machine || (!format && exti__json_get(o, "format")) ||
        !exti__json_integer(o, "bits", &bits) ||
        !exti__json_boolean(o, "big_endian", &target->big_endian))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "\"target\" lacks a member, or one is not valid");
    target->format = format ? exti__format_named(format) : EXTI_FORMAT_ELF;
    if (target->format == EXTI_FORMAT_NONE)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "is for %.64s files; this library reads ELF, Mach-O and PE", format);
    snprintf(target->machine, sizeof target->machine, "%s", machine);
    target->bits = (int)bits;
    return 0;
}

static int manifest_from_json(const struct exti_json *root, struct exti_manifest *m,
                              struct exti_error *err)
{
    const struct exti_json *api = exti__json_get(root, "api"),
                           *copies = exti__json_get(root, "copies");
    const char *name = exti__json_string(root, "name"),
               *closure = exti__json_string(root, "closure");
    int64_t generation, resolution = 0, names = 1;
    int rc = format_from_json(root, err);

    if (rc)
        return rc;
    if (!name || !exti__json_boolean(root, "renamed", &m->renamed) ||
        !exti__json_integer(root, "generation", &generation) ||
        !optional_integer(root, "resolution", &resolution) ||
        !optional_integer(root, "names", &names) || (!closure && exti__json_get(root, "closure")) ||
        !exti__json_is(copies, EXTI_JSON_ARRAY))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET, "a member is missing or not valid");
    if (exti__context_name_check(name, NULL))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "\"name\" is not a valid context name");
    snprintf(m->name, sizeof m->name, "%s", name);
    m->generation = (unsigned)generation;
    m->resolution = (unsigned)resolution;
    m->names = (unsigned)names;
    rc = target_from_json(exti__json_get(root, "target"), &m->target, err);
    if (!rc)
        rc = copy_member(root, "search", &m->search, err);
    if (!rc)
        rc = policy_from_json(closure ? closure : closures[EXTI_CLOSURE_NONE],
                              exti__json_get(root, "rules"), &m->policy, err);
    if (!rc)
        rc = entry_from_json(api, &m->api, err);
    return rc ? rc : entries_from_json(copies, m, err);
}

static int read_manifest(const char *dir, bool trusted, struct exti_manifest *out,
                         struct exti_error *err)
{
    struct exti_manifest m = {0};
    struct exti_json *root = NULL;
    char *path = exti__path_join(dir, EXTI_MANIFEST_FILE), *text = NULL;
    size_t n;
    int rc;

    if (!path)
        return exti__fail_nomem(err);
    rc = trusted ? exti__fs_read_trusted(path, MANIFEST_MAX, &text, &n, err)
                 : exti__fs_read(path, MANIFEST_MAX, &text, &n, err);
    if (!rc)
        rc = exti__json_read(text, n, "is damaged: ", &root, err);
    if (!rc)
        rc = manifest_from_json(root, &m, err);
    if (rc)
        exti__error_file(err, path);
    exti__json_free(root);
    exti__free(text);
    exti__free(path);
    if (rc)
        exti__manifest_clear(&m);
    else
        *out = m;
    return rc;
}

int exti__manifest_read(const char *dir, struct exti_manifest *out, struct exti_error *err)
{
    return read_manifest(dir, false, out, err);
}

int exti__manifest_read_trusted(const char *dir, struct exti_manifest *out, struct exti_error *err)
{
    return read_manifest(dir, true, out, err);
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
