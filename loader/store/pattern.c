#include "loader/store/pattern.h"

#include <string.h>

#include "base/mem.h"
#include "base/shareable.h"

/* ---- names ---- */

/* Puts a name in the place of another one of the same length. */
static void rename_bytes(uint8_t *bytes, size_t n, const char *from, const char *to)
{
    const size_t length = strlen(from);
    const uint8_t *found = bytes, *const end = bytes + n;

    while ((found = exti__mem_find(found, (size_t)(end - found), from, length))) {
        memcpy(bytes + (found - bytes), to, length);
        found += length;
    }
}

/* Replaces *text, which may be NULL, by a copy with the other name.  False without memory. */
static bool rename_text(char **text, const char *from, const char *to)
{
    if (!*text)
        return true;
    *text = exti__strdup(*text);
    if (*text)
        rename_bytes((uint8_t *)*text, strlen(*text), from, to);
    return *text != NULL;
}

static bool rename_need(struct exti_need *n, const char *from, const char *to)
{
    /* All three, so that none stays another entry's. */
    const bool name = rename_text(&n->name, from, to), copy = rename_text(&n->to, from, to),
               file = rename_text(&n->file, from, to);

    return name && copy && file;
}

/* The entry with another name in its texts. */
static bool renamed_entry(const struct exti_entry *e, const char *from, const char *to,
                          struct exti_entry *out)
{
    char **texts[] = {&out->source,  &out->build_id, &out->source_name,    &out->copy,
                      &out->renames, &out->edits,    &out->stable_abi_copy};
    bool ok = true;

    *out = *e;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ok = rename_text(texts[i], from, to) && ok;
    out->needs = exti__calloc(e->need_count + 1, sizeof *out->needs);
    out->need_count = out->needs ? e->need_count : 0;
    for (size_t i = 0; i < out->need_count; i++) {
        out->needs[i] = e->needs[i];
        ok = rename_need(&out->needs[i], from, to) && ok;
    }
    if (ok && out->needs)
        return true;
    exti__entry_clear(out);
    return false;
}

bool exti__pattern_entry(const struct exti_pattern *p, const char *name, struct exti_entry *out)
{
    return renamed_entry(&p->e, p->name, name, out);
}

uint8_t *exti__pattern_bytes(const struct exti_pattern *p, const char *name)
{
    uint8_t *bytes = exti__alloc(p->byte_count);

    if (bytes) {
        memcpy(bytes, p->bytes, p->byte_count);
        rename_bytes(bytes, p->byte_count, p->name, name);
    }
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

bool exti__pattern_take(const char *name, const struct exti_entry *e,
                        const struct exti_rewritten *copy, struct exti_pattern *out)
{
    *out = (struct exti_pattern){
        .kept = copy->copy.kept, .size = copy->copy.size, .e = {.source = NULL}};
    memcpy(out->name, name, strlen(name) + 1);
    if (take_bytes(copy, out) && renamed_entry(e, name, name, &out->e)) {
        out->e.left_out = copy->left_out;
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
                exti__parts_same(&a->left_out, &b->left_out) && a->generation == b->generation &&
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
                a->byte_count == b->byte_count;

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
