/* Reads quirk files, strictly: nobody would notice that a misspelt rule does nothing. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/json_write.h"
#include "base/mem.h"
#include "loader/resolve/quirks.h"

#define QUIRKS_FORMAT 1
#define ID_MAX 64

/* The rule that is being read, for messages. */
struct reader {
    size_t index;
    const char *id; /* NULL: not known yet */
    struct exti_error *err;
};

static int fail_rule(const struct reader *r, const char *fmt, ...) EXTI_PRINTF(2, 3);
static int fail_rule(const struct reader *r, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (r->id)
        return exti__fail(r->err, EXTI_E_FORMAT, EXTI_NO_OFFSET, "quirks[%zu] (%s): %s", r->index,
                          r->id, text);
    return exti__fail(r->err, EXTI_E_FORMAT, EXTI_NO_OFFSET, "quirks[%zu]: %s", r->index, text);
}

static const char *type_name(const struct exti_json *v)
{
    switch (v->type) {
    case EXTI_JSON_OBJECT:
        return "an object";
    case EXTI_JSON_ARRAY:
        return "an array";
    case EXTI_JSON_STRING:
        return "a string";
    case EXTI_JSON_INTEGER:
    case EXTI_JSON_REAL:
        return "a number";
    case EXTI_JSON_NULL:
        return "null";
    default:
        return "a boolean";
    }
}

/* ---- single values ---- */

static int check_string(const struct reader *r, const char *where, const struct exti_json *v)
{
    if (!exti__json_is(v, EXTI_JSON_STRING))
        return fail_rule(r, "%s is %s, not a string", where, type_name(v));
    return v->count ? 0 : fail_rule(r, "%s is empty", where);
}

/* What is wrong with the bracket expression at `p`, or NULL; then *end is behind it.  A leading
 * ] stands for itself. */
static const char *set_fault(const char *p, const char **end)
{
    const char *q = p + 1 + (p[1] == '!'), *first = q;

    for (; *q && (*q != ']' || q == first); q++) {
        if (q[1] != '-' || !q[2] || q[2] == ']')
            continue;
        if ((unsigned char)q[0] > (unsigned char)q[2])
            return "has a range that ends before it begins";
        q += 2;
    }
    *end = q + 1;
    return *q ? NULL : "has a '[' without a ']'";
}

static int check_glob(const struct reader *r, const char *where, const struct exti_json *v)
{
    const char *glob = v->text, *fault;
    int rc = check_string(r, where, v);

    for (const char *p = glob; !rc && *p;) {
        if (*p != '[') {
            p++;
            continue;
        }
        fault = set_fault(p, &p);
        if (fault)
            rc = fail_rule(r, "%s: '%s' %s", where, glob, fault);
    }
    return rc;
}

static bool consists_of(const char *text, const char *extra)
{
    for (; *text; text++)
        if (!((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') ||
              (*text >= '0' && *text <= '9') || strchr(extra, *text)))
            return false;
    return true;
}

static int check_id(const struct reader *r, const char *where, const struct exti_json *v)
{
    int rc = check_string(r, where, v);

    if (rc)
        return rc;
    if (v->count > ID_MAX || !consists_of(v->text, "._-"))
        return fail_rule(r, "%s is '%s'; it takes 1 to %d letters, digits, '.', '_' and '-'", where,
                         v->text, ID_MAX);
    return 0;
}

/* A name as in a symbol table, without a version. */
static int check_symbol_name(const struct reader *r, const char *where, const char *name)
{
    const char *p = name;

    while ((unsigned char)*p > ' ' && *p != '@' && *p != 0x7f)
        p++;
    return *name && !*p ? 0 : fail_rule(r, "%s: '%s' is not a symbol name", where, name);
}

static int check_library(const struct reader *r, const char *where, const struct exti_json *v)
{
    int rc = check_string(r, where, v);

    if (!rc && strcmp(v->text, "share") != 0 && strcmp(v->text, "isolate") != 0)
        rc = fail_rule(r, "%s is '%.80s', neither share nor isolate", where, v->text);
    return rc;
}

/* ---- maps ---- */

static int check_map(const struct reader *r, const char *where, const struct exti_json *v)
{
    if (!exti__json_is(v, EXTI_JSON_OBJECT))
        return fail_rule(r, "%s is %s, not an object", where, type_name(v));
    if (!v->count)
        return fail_rule(r, "%s is empty", where);
    for (const struct exti_json *m = v->items; m < v->items + v->count; m++)
        if (!exti__json_is(m, EXTI_JSON_STRING))
            return fail_rule(r, "%s: '%s' is %s, not a string", where, m->name, type_name(m));
    return 0;
}

static int check_symbol_map(const struct reader *r, const char *where, const struct exti_json *v)
{
    int rc = check_map(r, where, v);

    for (size_t i = 0; !rc && i < v->count; i++) {
        const struct exti_json *m = &v->items[i];

        rc = check_symbol_name(r, where, m->name);
        if (!rc)
            rc = check_symbol_name(r, where, m->text);
        if (!rc && strcmp(m->name, m->text) == 0)
            rc = fail_rule(r, "%s: '%s' is renamed to itself", where, m->name);
    }
    return rc;
}

/* Neither a chain of renames nor two renames to one name are allowed: their order is not
 * defined. */
static int check_renames(const struct reader *r, const char *where, const struct exti_json *v)
{
    int rc = check_symbol_map(r, where, v);

    if (rc)
        return rc;
    for (const struct exti_json *m = v->items; m < v->items + v->count; m++) {
        if (exti__json_get(v, m->text))
            return fail_rule(r, "%s: '%s' becomes '%s', which is itself renamed", where, m->name,
                             m->text);
        for (const struct exti_json *other = v->items; other < m; other++)
            if (strcmp(m->text, other->text) == 0)
                return fail_rule(r, "%s: '%s' and '%s' would both be '%s'", where, other->name,
                                 m->name, m->text);
    }
    return 0;
}

static int check_environment(const struct reader *r, const char *where, const struct exti_json *v)
{
    int rc = check_map(r, where, v);

    for (size_t i = 0; !rc && i < v->count; i++) {
        const char *name = v->items[i].name;

        if (!*name || (*name >= '0' && *name <= '9') || !consists_of(name, "_"))
            rc = fail_rule(r, "%s: '%s' is not a variable name; use letters, digits and '_'", where,
                           name);
    }
    return rc;
}

/* ---- a rule ---- */

struct member {
    const char *name;
    int (*check)(const struct reader *r, const char *where, const struct exti_json *v);
};

static int unknown_member(const struct reader *r, const char *where, const char *name,
                          const struct member *table, size_t n)
{
    char names[200] = "";

    for (size_t i = 0, at = 0; i < n; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "", table[i].name);
    return fail_rule(r, "%sunknown member '%.80s'; known are %s", where, name, names);
}

static int check_members(const struct reader *r, const char *where, const struct exti_json *o,
                         const struct member *table, size_t n)
{
    for (const struct exti_json *m = o->items; m < o->items + o->count; m++) {
        char path[64];
        size_t i = 0;
        int rc;

        while (i < n && strcmp(table[i].name, m->name) != 0)
            i++;
        if (i == n)
            return unknown_member(r, where, m->name, table, n);
        snprintf(path, sizeof path, "%s%s", *where ? "match." : "", m->name);
        rc = table[i].check(r, path, m);
        if (rc)
            return rc;
    }
    return 0;
}

static int check_match(const struct reader *r, const char *where, const struct exti_json *v)
{
    static const struct member table[] = {{"file", check_glob},
                                          {"needs", check_glob},
                                          {"imports", check_glob},
                                          {"exports", check_glob},
                                          {"text", check_string}};

    if (!exti__json_is(v, EXTI_JSON_OBJECT))
        return fail_rule(r, "%s is %s, not an object", where, type_name(v));
    if (!v->count)
        return fail_rule(r, "%s is empty: it would match every file", where);
    return check_members(r, "match: ", v, table, sizeof table / sizeof *table);
}

static const struct member members[] = {
    {"id", check_id},          {"match", check_match},         {"library", check_library},
    {"rename", check_renames}, {"redirect", check_symbol_map}, {"environment", check_environment},
    {"refuse", check_string},  {"note", check_string}};
#define EFFECTS 2 /* members from here on have an effect */
#define REFUSE 6
static const size_t member_count = sizeof members / sizeof *members;

static int check_contradictions(const struct reader *r, const struct exti_json *rule)
{
    const struct exti_json *redirect = exti__json_get(rule, "redirect"),
                           *rename = exti__json_get(rule, "rename");

    for (size_t i = EFFECTS; i < REFUSE && exti__json_get(rule, "refuse"); i++)
        if (exti__json_get(rule, members[i].name))
            return fail_rule(
                r, "refuse and %s contradict each other: a file that is refused has no copy",
                members[i].name);
    for (size_t i = 0; i < exti__json_count(rename, EXTI_JSON_OBJECT); i++)
        if (exti__json_get(redirect, rename->items[i].name))
            return fail_rule(r, "'%s' is in both rename and redirect; keep one",
                             rename->items[i].name);
    return 0;
}

static int check_rule(struct reader *r, const struct exti_json *rule)
{
    const struct exti_json *id = exti__json_get(rule, "id");
    size_t i = EFFECTS;
    int rc;

    if (!exti__json_is(rule, EXTI_JSON_OBJECT))
        return fail_rule(r, "is %s, not an object", type_name(rule));
    if (!id)
        return fail_rule(r, "has no id");
    rc = check_id(r, "id", id);
    if (rc)
        return rc;
    r->id = id->text;
    rc = check_members(r, "", rule, members, member_count);
    if (rc)
        return rc;
    if (!exti__json_get(rule, "match"))
        return fail_rule(r, "has no match; add one to say which files it is for");
    while (i < member_count && !exti__json_get(rule, members[i].name))
        i++;
    if (i == member_count)
        return fail_rule(
            r, "does nothing: give it library, rename, redirect, environment, refuse or note");
    return check_contradictions(r, rule);
}

/* ---- a file ---- */

static struct exti_quirk *find_rule(const struct exti_quirks *q, const char *id, size_t from,
                                    size_t to)
{
    for (size_t i = from; i < to; i++)
        if (strcmp(q->rules[i].id, id) == 0)
            return &q->rules[i];
    return NULL;
}

/* `before`: the number of rules of earlier files. */
static int disable_rules(struct exti_quirks *q, const char *path, const struct exti_json *ids,
                         size_t before, struct exti_error *err)
{
    if (!ids)
        return 0;
    if (!exti__json_is(ids, EXTI_JSON_ARRAY))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET, "disable is %s, not an array of ids",
                          type_name(ids));
    for (size_t i = 0; i < exti__json_count(ids, EXTI_JSON_ARRAY); i++) {
        const struct exti_json *id = &ids->items[i];
        struct exti_quirk *rule;

        if (!exti__json_is(id, EXTI_JSON_STRING))
            return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                              "disable[%zu] is %s, not a rule's id", i, type_name(id));
        rule = find_rule(q, id->text, 0, before);
        if (!rule)
            return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                              "disable[%zu]: no earlier file has a rule '%.80s'; 'extisolate "
                              "quirks' lists them",
                              i, id->text);
        /* Of several rules with that id, only the last is still enabled: it is the one meant. */
        for (; rule; rule = find_rule(q, rule->id, (size_t)(rule - q->rules) + 1, before))
            if (!rule->disabled_by)
                rule->disabled_by = path;
    }
    return 0;
}

static int add_rule(struct exti_quirks *q, const char *path, const struct exti_json *rule,
                    size_t index, size_t before, struct exti_error *err)
{
    struct reader r = {.index = index, .err = err};
    int rc = check_rule(&r, rule);
    struct exti_quirk *other, made = {.rule = rule, .id = r.id, .file = path, .index = index};

    if (rc)
        return rc;
    other = find_rule(q, r.id, before, q->count);
    if (other)
        return fail_rule(&r, "has the same id as quirks[%zu]", other->index);
    rc = exti__json_text(rule, EXTI_JSON_COMPACT, &made.text, err);
    if (rc)
        return rc;
    for (size_t i = 0; i < before; i++)
        if (!q->rules[i].disabled_by && strcmp(q->rules[i].id, made.id) == 0)
            q->rules[i].disabled_by = path;
    q->rules[q->count++] = made;
    return 0;
}

static int check_top(const struct exti_json *root, struct exti_error *err)
{
    const struct exti_json *format = exti__json_get(root, "extisolate_quirks");

    if (!exti__json_is(root, EXTI_JSON_OBJECT) || !format)
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "is not a quirk file; one starts with {\"extisolate_quirks\": %d",
                          QUIRKS_FORMAT);
    if (!exti__json_is(format, EXTI_JSON_INTEGER))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "extisolate_quirks is %s, not the format's number", type_name(format));
    if (format->integer != QUIRKS_FORMAT)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "has format %lld; this library reads format %d",
                          (long long)format->integer, QUIRKS_FORMAT);
    for (size_t i = 0; i < root->count; i++) {
        const char *name = root->items[i].name;

        if (strcmp(name, "extisolate_quirks") != 0 && strcmp(name, "quirks") != 0 &&
            strcmp(name, "disable") != 0)
            return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                              "unknown member '%.80s'; known are extisolate_quirks, quirks, "
                              "disable",
                              name);
    }
    return 0;
}

static int add_rules(struct exti_quirks *q, const struct exti_quirk_file *file,
                     struct exti_error *err)
{
    const struct exti_json *list = exti__json_get(file->root, "quirks");
    const size_t before = q->count;
    struct exti_quirk *rules;
    int rc = check_top(file->root, err);

    if (!rc && list && !exti__json_is(list, EXTI_JSON_ARRAY))
        rc = exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET, "quirks is %s, not an array of rules",
                        type_name(list));
    if (!rc)
        rc = disable_rules(q, file->path, exti__json_get(file->root, "disable"), before, err);
    if (rc)
        return rc;
    if (!exti__json_count(list, EXTI_JSON_ARRAY) && !exti__json_get(file->root, "disable") &&
        file->path)
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET, "has neither quirks nor disable");
    if (!list)
        return 0;
    rules = exti__realloc_array(q->rules, before + exti__json_count(list, EXTI_JSON_ARRAY) + 1,
                                sizeof *rules);
    if (!rules)
        return exti__fail_nomem(err);
    q->rules = rules;
    for (size_t i = 0; !rc && i < exti__json_count(list, EXTI_JSON_ARRAY); i++)
        rc = add_rule(q, file->path, &list->items[i], i, before, err);
    return rc;
}

int exti__quirks_read(struct exti_quirks *q, const char *path, const char *text, size_t n,
                      struct exti_error *err)
{
    struct exti_quirk_file *file,
        *files = exti__realloc_array(q->files, q->file_count + 1, sizeof *files);
    int rc;

    if (!files)
        return exti__fail_nomem(err);
    q->files = files;
    file = &files[q->file_count++];
    *file = (struct exti_quirk_file){.path = path ? exti__strdup(path) : NULL};
    if (path && !file->path)
        return exti__fail_nomem(err);
    rc = exti__json_read(text, n, "", &file->root, err);
    return rc ? rc : add_rules(q, file, err);
}
