#include "loader/store/pattern.h"

#include <string.h>

#include "base/mem.h"
#include "base/shareable.h"
#include "loader/store/copy_names.h"

/* ---- names ---- */

/* The name in the place of another one of the same length; and the copy's id, if that is cut off in
 * it.  `from_id` and `to_id` begin the copies' names. */
struct names {
    const char *from, *to;
    size_t id_length;
    char from_id[EXTI_FILE_NAME_MAX + 1], to_id[EXTI_FILE_NAME_MAX + 1];
};

static void replace(void *bytes, size_t n, const char *from, const char *to, size_t length)
{
    uint8_t *at = bytes;
    const uint8_t *found = at, *const end = at + n;

    while ((found = exti__mem_find(found, (size_t)(end - found), from, length))) {
        memcpy(at + (found - at), to, length);
        found += length;
    }
}

/* False if the other copy's id would be another part of its name. */
static bool find_names(const struct exti_pattern *p, const char *to, struct names *out)
{
    char planned[EXTI_FILE_NAME_MAX + 1];

    out->from = p->name;
    out->to = to;
    out->id_length = p->id_length;
    if (!p->id_length)
        return true;
    strcpy(out->from_id, p->e.copy);
    strcpy(out->to_id, p->e.copy);
    replace(out->to_id, strlen(out->to_id), p->name, to, strlen(to));
    exti__copy_name_api_id(p->e.source_name, out->to_id, planned);
    return strlen(planned) == p->id_length;
}

/* Replaces *text, which may be NULL, by a copy with the other names.  False without memory. */
static bool rename_text(char **text, const struct names *names)
{
    if (!*text)
        return true;
    *text = exti__strdup(*text);
    if (!*text)
        return false;
    replace(*text, strlen(*text), names->from, names->to, strlen(names->from));
    if (names->id_length)
        replace(*text, strlen(*text), names->from_id, names->to_id, names->id_length);
    return true;
}

static bool rename_need(struct exti_need *n, const struct names *names)
{
    /* All three, so that none stays another entry's. */
    const bool name = rename_text(&n->name, names), copy = rename_text(&n->to, names),
               file = rename_text(&n->file, names);

    return name && copy && file;
}

/* The entry with other names in its texts. */
static bool renamed_entry(const struct exti_entry *e, const struct names *names,
                          struct exti_entry *out)
{
    char **texts[] = {&out->source,  &out->build_id, &out->source_name,    &out->copy,
                      &out->renames, &out->edits,    &out->stable_abi_copy};
    bool ok = true;

    *out = *e;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ok = rename_text(texts[i], names) && ok;
    out->needs = exti__calloc(e->need_count + 1, sizeof *out->needs);
    out->need_count = out->needs ? e->need_count : 0;
    for (size_t i = 0; i < out->need_count; i++) {
        out->needs[i] = e->needs[i];
        ok = rename_need(&out->needs[i], names) && ok;
    }
    if (ok && out->needs)
        return true;
    exti__entry_clear(out);
    return false;
}

bool exti__pattern_entry(const struct exti_pattern *p, const char *name, struct exti_entry *out)
{
    struct names names;

    *out = (struct exti_entry){.source = NULL};
    return find_names(p, name, &names) && renamed_entry(&p->e, &names, out);
}

uint8_t *exti__pattern_bytes(const struct exti_pattern *p, const char *name)
{
    struct names names;
    uint8_t *bytes = find_names(p, name, &names) ? exti__alloc(p->byte_count) : NULL;

    if (!bytes)
        return NULL;
    memcpy(bytes, p->bytes, p->byte_count);
    replace(bytes, p->byte_count, p->name, name, strlen(name));
    if (p->id_part)
        memcpy(bytes + p->id_at, name, p->id_part);
    return bytes;
}

/* ---- making ---- */

static bool take_bytes(const struct exti_rewritten *copy, struct exti_pattern *out)
{
    uint8_t *to;

    out->byte_count = copy->copy.size - copy->copy.kept;
    for (size_t i = 0; i < copy->changed_count; i++)
        out->byte_count += copy->changed[i].n;
    out->bytes = to = exti__alloc(out->byte_count);
    out->changed = exti__calloc(copy->changed_count + 1, sizeof *out->changed);
    if (!out->bytes || !out->changed)
        return false;
    for (size_t i = 0; i < copy->changed_count; i++) {
        const struct exti_range *r = &copy->changed[i];

        out->changed[out->changed_count++] = *r;
        memcpy(to, copy->copy.image.p + r->at, r->n);
        to += r->n;
    }
    memcpy(to, copy->copy.image.p + copy->copy.kept, copy->copy.size - copy->copy.kept);
    return true;
}

/* Counts the places where an edit has written the id's part of the name into `r`, and notes the
 * last one; `done` of the pattern's bytes are of ranges before. */
static size_t count_ids(const struct exti_rewritten *copy, const char *id,
                        const struct exti_range *r, size_t done, struct exti_pattern *p)
{
    const size_t before = p->id_length - p->id_part, end = r->at + r->n,
                 limit = end < copy->copy.size ? end + 1 : end;
    const uint8_t *const image = copy->copy.image.p, *found;
    size_t at = r->at < before ? 0 : r->at - before, count = 0;

    while ((found = exti__mem_find(image + at, limit - at, id, p->id_length + 1))) {
        const size_t part = (size_t)(found - image) + before;

        at = (size_t)(found - image) + 1;
        if (part < r->at)
            continue;
        p->id_at = done + (part - r->at);
        count++;
    }
    return count;
}

/* Finds the id with the byte that ends it, at one place alone. */
static bool find_id(const struct exti_rewritten *copy, const char *id, struct exti_pattern *p)
{
    const struct exti_range end = {p->kept, p->size - p->kept};
    size_t done = 0, count = 0;

    for (size_t i = 0; i < p->changed_count; i++) {
        count += count_ids(copy, id, &p->changed[i], done, p);
        done += p->changed[i].n;
    }
    return count + count_ids(copy, id, &end, done, p) == 1;
}

/* Whether the id is the copy's name because that begins like the original's id, the context's name
 * included: then those of other contexts are cut off. */
static bool is_whole_by_chance(const struct exti_entry *e, size_t before_name)
{
    const char *old = e->source_name ? e->source_name : "";

    return strlen(old) > before_name && strncmp(old, e->copy, strlen(old)) == 0;
}

/* Whether the id is the copy's name, or its beginning. */
static bool take_id(const struct exti_rewritten *copy, const char *id, const struct exti_entry *e,
                    struct exti_pattern *p)
{
    const size_t length = strlen(id), whole = strlen(e->copy), name = strlen(p->name);

    if (strncmp(id, e->copy, length) != 0)
        return false;
    if (length == whole)
        return whole < name || !is_whole_by_chance(e, whole - name);
    /* Made by exti__copy_name_api, which ends with the name. */
    if (whole < name || strcmp(e->copy + whole - name, p->name) != 0)
        return false;
    if (length <= whole - name)
        return true;
    p->id_length = length;
    p->id_part = length - (whole - name);
    return find_id(copy, id, p);
}

bool exti__pattern_take(const char *name, const char *id, const struct exti_entry *e,
                        const struct exti_rewritten *copy, struct exti_pattern *out)
{
    const struct names same = {.from = name, .to = name};

    *out = (struct exti_pattern){
        .kept = copy->copy.kept, .size = copy->copy.size, .e = {.source = NULL}};
    memcpy(out->name, name, strlen(name) + 1);
    if (take_bytes(copy, out) && take_id(copy, id, e, out) && renamed_entry(e, &same, &out->e)) {
        out->e.left_out = copy->left_out;
        out->e.unloaded = copy->unloaded;
        return true;
    }
    exti__pattern_free(out);
    return false;
}

void exti__pattern_free(struct exti_pattern *p)
{
    exti__entry_clear(&p->e);
    exti__free(p->changed);
    exti__free(p->bytes);
    *p = (struct exti_pattern){.size = 0};
}

/* ---- comparing ---- */

bool exti__pattern_differs(const struct exti_pattern *p, const struct exti_pattern *other)
{
    return strcmp(p->name, other->name) != 0 &&
           (!p->id_part || strncmp(p->name, other->name, p->id_part) != 0);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_need(const struct exti_need *a, const struct exti_need *b)
{
    return same_text(a->name, b->name) && same_text(a->to, b->to) && same_text(a->file, b->file) &&
           a->isolated == b->isolated && a->optional == b->optional;
}

static bool same_entry(const struct exti_entry *a, const struct exti_entry *b)
{
    bool same = same_text(a->source, b->source) && same_text(a->build_id, b->build_id) &&
                same_text(a->source_name, b->source_name) && same_text(a->copy, b->copy) &&
                same_text(a->renames, b->renames) && same_text(a->edits, b->edits) &&
                same_text(a->stable_abi_copy, b->stable_abi_copy) &&
                exti__parts_same(&a->left_out, &b->left_out) &&
                exti__parts_same(&a->unloaded, &b->unloaded) && a->generation == b->generation &&
                a->resolution == b->resolution && a->symbolic == b->symbolic &&
                a->takes_api == b->takes_api && a->withheld == b->withheld &&
                a->need_count == b->need_count;

    for (size_t i = 0; i < a->need_count && same; i++)
        same = same_need(&a->needs[i], &b->needs[i]);
    return same;
}

static bool same_ranges(const struct exti_pattern *a, const struct exti_pattern *b)
{
    bool same = a->kept == b->kept && a->size == b->size && a->changed_count == b->changed_count &&
                a->byte_count == b->byte_count && a->id_length == b->id_length &&
                a->id_part == b->id_part && a->id_at == b->id_at;

    for (size_t i = 0; same && i < a->changed_count; i++)
        same = a->changed[i].at == b->changed[i].at && a->changed[i].n == b->changed[i].n;
    return same;
}

bool exti__pattern_matches(const struct exti_pattern *p, const struct exti_pattern *other)
{
    struct exti_entry e;
    uint8_t *bytes;
    bool matches;

    if (!same_ranges(p, other) || !exti__pattern_entry(p, other->name, &e))
        return false;
    bytes = exti__pattern_bytes(p, other->name);
    matches = bytes && memcmp(bytes, other->bytes, p->byte_count) == 0 && same_entry(&e, &other->e);
    exti__free(bytes);
    exti__entry_clear(&e);
    return matches;
}
