/* Writes manifest.json. */
#include <string.h>

#include "base/error.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "base/os/fs_replace.h"
#include "base/path.h"
#include "base/utf8.h"
#include "loader/store/manifest.h"

#define MANIFEST_FORMAT_FULL 2

int exti__manifest_check_text(const char *text, const char *what, struct exti_error *err)
{
    if (!text || exti__utf8_is(text))
        return 0;
    return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                      "its %s is not UTF-8, so the manifest cannot hold it", what);
}

/* A string that may be missing. */
static void put_optional(struct exti_json_writer *w, const char *name, const char *text)
{
    if (text)
        exti__json_put_string(w, name, text);
}

static void put_needs(struct exti_json_writer *w, const struct exti_entry *e)
{
    exti__json_open(w, "needs", '[');
    for (size_t i = 0; i < e->need_count; i++) {
        const struct exti_need *n = &e->needs[i];

        exti__json_open(w, NULL, '{');
        exti__json_put_string(w, "name", n->name);
        exti__json_put_boolean(w, "isolated", n->isolated);
        if (n->optional)
            exti__json_put_boolean(w, "optional", true);
        put_optional(w, "to", n->to);
        put_optional(w, "file", n->file);
        exti__json_close(w, '{');
    }
    exti__json_close(w, '[');
}

static void put_parts(struct exti_json_writer *w, const char *name, const struct exti_unread *parts)
{
    if (!parts->count)
        return;
    exti__json_open(w, name, '[');
    for (size_t i = 0; i < parts->count; i++) {
        exti__json_open(w, NULL, '[');
        exti__json_put_integer(w, NULL, (int64_t)parts->part[i].at);
        exti__json_put_integer(w, NULL, (int64_t)parts->part[i].n);
        exti__json_close(w, '[');
    }
    exti__json_close(w, '[');
}

static void put_entry(struct exti_json_writer *w, const char *name, const struct exti_entry *e)
{
    exti__json_open(w, name, '{');
    exti__json_put_string(w, "source", e->source);
    exti__json_put_integer(w, "size", (int64_t)e->id.size);
    exti__json_put_integer(w, "mtime_ns", e->id.mtime_ns);
    exti__json_put_integer(w, "inode", (int64_t)e->id.inode);
    exti__json_put_string(w, "copy", e->copy);
    exti__json_put_integer(w, "copy_size", (int64_t)e->copy_id.size);
    exti__json_put_integer(w, "copy_mtime_ns", e->copy_id.mtime_ns);
    exti__json_put_integer(w, "generation", e->generation);
    exti__json_put_integer(w, "resolution", e->resolution);
    exti__json_put_boolean(w, "symbolic", e->symbolic);
    exti__json_put_boolean(w, "takes_api", e->takes_api);
    exti__json_put_boolean(w, "withheld", e->withheld);
    exti__json_put_boolean(w, "synced", e->synced);
    exti__json_put_string(w, "boot", e->boot);
    put_needs(w, e);
    exti__json_put_compact(w, "edits", e->edits);
    if (e->copy_id.inode) {
        exti__json_put_integer(w, "copy_inode", (int64_t)e->copy_id.inode);
        exti__json_put_integer(w, "copy_device", (int64_t)e->copy_id.device);
        exti__json_put_integer(w, "copy_ctime_ns", e->copy_id.ctime_ns);
        if (*e->copy_hash)
            exti__json_put_string(w, "copy_sha256", e->copy_hash);
    }
    put_parts(w, "left_out", &e->left_out);
    put_parts(w, "unloaded", &e->unloaded);
    put_optional(w, "build_id", e->build_id);
    if (e->renames)
        exti__json_put_compact(w, "renames", e->renames);
    put_optional(w, "id", e->source_name);
    exti__json_close(w, '{');
}

static void put_target(struct exti_json_writer *w, const struct exti_target *target)
{
    exti__json_open(w, "target", '{');
    exti__json_put_string(w, "format", exti__format_name(target->format));
    exti__json_put_string(w, "machine", target->machine);
    exti__json_put_integer(w, "bits", target->bits);
    exti__json_put_boolean(w, "big_endian", target->big_endian);
    exti__json_close(w, '{');
}

static void put_policy(struct exti_json_writer *w, const struct exti_manifest_policy *p)
{
    exti__json_put_string(w, "closure", exti__closure_name(p->closure));
    exti__json_open(w, "rules", '[');
    for (size_t i = 0; i < p->rule_count; i++) {
        exti__json_open(w, NULL, '{');
        exti__json_put_string(w, p->rules[i].share ? "share" : "isolate", p->rules[i].glob);
        exti__json_close(w, '{');
    }
    exti__json_close(w, '[');
}

/* Earlier versions would load a lean copy as it is. */
static int format_of(const struct exti_manifest *m)
{
    bool lean = m->api.left_out.count > 0;

    for (size_t i = 0; i < m->count && !lean; i++)
        lean = m->entries[i].left_out.count > 0;
    return lean ? EXTI_MANIFEST_FORMAT : MANIFEST_FORMAT_FULL;
}

static int manifest_text(const struct exti_manifest *m, char **out, struct exti_error *err)
{
    struct exti_json_writer w = exti__json_writer(EXTI_JSON_INDENTED);

    exti__json_open(&w, NULL, '{');
    exti__json_put_integer(&w, "extisolate", format_of(m));
    exti__json_put_string(&w, "name", m->name);
    put_target(&w, &m->target);
    exti__json_put_boolean(&w, "renamed", m->renamed);
    if (m->renamed)
        exti__json_put_integer(&w, "names", m->names);
    exti__json_put_integer(&w, "generation", m->generation);
    put_policy(&w, &m->policy);
    exti__json_put_integer(&w, "resolution", m->resolution);
    put_entry(&w, "api", &m->api);
    exti__json_open(&w, "copies", '[');
    for (size_t i = 0; i < m->count; i++)
        if (!m->entries[i].marks.unwritten)
            put_entry(&w, NULL, &m->entries[i]);
    exti__json_close(&w, '[');
    put_optional(&w, "search", m->search);
    exti__json_close(&w, '{');
    return exti__json_end(&w, out, err);
}

int exti__manifest_write(const char *dir, const struct exti_manifest *m, bool sync,
                         struct exti_error *err)
{
    char *text = NULL, *path = exti__path_join(dir, EXTI_MANIFEST_FILE);
    int rc = path ? manifest_text(m, &text, err) : exti__fail_nomem(err);

    if (!rc)
        rc = exti__fs_replace(path, text, strlen(text), sync ? EXTI_FS_SYNC : 0, err);
    exti__free(text);
    exti__free(path);
    return rc;
}
