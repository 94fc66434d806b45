/* Loads quirks, matches them to files, and combines their effects. */
#include "loader/resolve/quirks.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/glob.h"
#include "base/mem.h"
#include "base/opts.h"
#include "base/os/fs_read.h"
#include "base/os/sha256.h"
#include "base/path.h"
#include "loader/resolve/policy.h"

#define FILE_MAX ((size_t)16 << 20)

/* ---- the rules ---- */

static int read_quirk_file(struct exti_quirks *q, const char *path, struct exti_error *err)
{
    char *text = NULL;
    size_t n;
    int rc = exti__fs_read(path, FILE_MAX, &text, &n, err);

    if (!rc)
        rc = exti__quirks_read(q, path, text, n, err);
    if (rc)
        exti__error_file(err, path);
    exti__free(text);
    return rc;
}

int exti_quirks_open(const char *const *files, size_t count, struct exti_quirks **out,
                     struct exti_error *err)
{
    struct exti_quirks *q;
    int rc = 0;

    if (!out || (count && !files))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "files or out is NULL");
    for (size_t i = 0; i < count; i++)
        if (!files[i] || !*files[i])
            return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "quirk file %zu has no name", i);
    q = exti__calloc(1, sizeof *q);
    if (!q)
        return exti__fail_nomem(err);
    rc = exti__quirks_read(q, NULL, exti__quirks_builtin, strlen(exti__quirks_builtin), err);
    for (size_t i = 0; !rc && i < count; i++)
        rc = read_quirk_file(q, files[i], err);
    if (rc)
        exti_quirks_free(q);
    else
        *out = q;
    return rc;
}

void exti_quirks_free(struct exti_quirks *q)
{
    if (!q)
        return;
    for (size_t i = 0; i < q->count; i++)
        exti__free(q->rules[i].text);
    for (size_t i = 0; i < q->file_count; i++) {
        exti__json_free(q->files[i].root);
        exti__free(q->files[i].path);
    }
    exti__free(q->rules);
    exti__free(q->files);
    exti__free(q);
}

size_t exti_quirks_count(const struct exti_quirks *q)
{
    return q ? q->count : 0;
}

int exti_quirks_info(const struct exti_quirks *q, size_t i, struct exti_quirk_info *out)
{
    const struct exti_quirk *quirk;
    struct exti_quirk_info info;

    if (!q || i >= q->count)
        return EXTI_E_ARG;
    quirk = &q->rules[i];
    info = (struct exti_quirk_info){sizeof info,  quirk->id,          quirk->file,
                                    quirk->index, quirk->disabled_by, quirk->text};
    return exti__opts_give(out, &info, sizeof info);
}

/* ---- matching ---- */

static bool has_file_name(const char *glob, const char *path, const struct exti_image *im)
{
    if (strchr(glob, '/'))
        return exti__glob_matches(glob, path, false);
    return (im->info.id && exti__glob_matches(glob, im->info.id, false)) ||
           exti__glob_matches(glob, exti__base_name(path), false);
}

static bool has_needed(const char *glob, const struct exti_image *im)
{
    for (size_t i = 0; i < im->info.needed_count; i++)
        if (exti__glob_matches(glob, im->needed[i].name, false))
            return true;
    return false;
}

static bool has_symbol(const char *glob, const struct exti_image *im, bool exported)
{
    for (size_t i = 0; i < im->info.symbol_count; i++)
        if (((im->symbols[i].flags & EXTI_SYM_EXPORT) != 0) == exported &&
            exti__glob_matches(glob, im->symbols[i].name, false))
            return true;
    return false;
}

/* The text comes last, as searching for it takes a pass over the whole file. */
static bool quirk_applies(const struct exti_quirk *quirk, const char *path,
                          const struct exti_image *im)
{
    const struct exti_json *match = exti__json_get(quirk->rule, "match");
    const char *file = exti__json_string(match, "file"),
               *needed = exti__json_string(match, "needs"),
               *imports = exti__json_string(match, "imports"),
               *exports = exti__json_string(match, "exports"),
               *text = exti__json_string(match, "text");

    return !quirk->disabled_by && (!file || has_file_name(file, path, im)) &&
           (!needed || has_needed(needed, im)) && (!imports || has_symbol(imports, im, false)) &&
           (!exports || has_symbol(exports, im, true)) &&
           (!text || exti_image_mention(im, text, 0) != EXTI_NO_OFFSET);
}

size_t exti_quirks_next(const struct exti_quirks *q, const char *path, const struct exti_image *im,
                        size_t from)
{
    size_t i = from;

    if (!q)
        return 0;
    while (path && im && i < q->count && !quirk_applies(&q->rules[i], path, im))
        i++;
    return path && im && i < q->count ? i : q->count;
}

/* ---- effects ---- */

/* Whether a later rule that applies also sets the variable. */
static bool set_later(const struct exti_quirks *q, const char *path, const struct exti_image *im,
                      size_t i, const char *name)
{
    while ((i = exti_quirks_next(q, path, im, i + 1)) < q->count)
        if (exti__json_get(exti__json_get(q->rules[i].rule, "environment"), name))
            return true;
    return false;
}

int exti_quirks_environment(const struct exti_quirks *q, const char *path,
                            const struct exti_image *im, size_t i, const char **name,
                            const char **value)
{
    for (size_t r = exti_quirks_next(q, path, im, 0); r < exti_quirks_count(q);
         r = exti_quirks_next(q, path, im, r + 1)) {
        const struct exti_json *all = exti__json_get(q->rules[r].rule, "environment");

        for (size_t k = 0; k < exti__json_count(all, EXTI_JSON_OBJECT); k++) {
            if (set_later(q, path, im, r, all->items[k].name) || i-- > 0)
                continue;
            *name = all->items[k].name;
            *value = all->items[k].text;
            return 1;
        }
    }
    return 0;
}

/* A later rule's pair replaces an earlier rule's. */
static int put_pairs(struct exti_rename **pairs, size_t *count, const struct exti_json *map,
                     struct exti_error *err)
{
    struct exti_rename *p;

    if (!map)
        return 0;
    p = exti__realloc_array(*pairs, *count + map->count, sizeof *p);
    if (!p)
        return exti__fail_nomem(err);
    *pairs = p;
    for (const struct exti_json *m = map->items; m < map->items + map->count; m++) {
        size_t i = 0;

        while (i < *count && strcmp(p[i].from, m->name) != 0)
            i++;
        p[i] = (struct exti_rename){m->name, m->text};
        *count += i == *count;
    }
    return 0;
}

static int put_rule(struct exti_quirk_effect *e, const struct exti_quirk *quirk,
                    struct exti_error *err)
{
    const struct exti_json *o = quirk->rule;
    const char *why = exti__json_string(o, "refuse"), *library = exti__json_string(o, "library");
    int rc = put_pairs(&e->renames, &e->rename_count, exti__json_get(o, "rename"), err);

    if (!rc)
        rc = put_pairs(&e->redirects, &e->redirect_count, exti__json_get(o, "redirect"), err);
    if (!rc && library) {
        e->library = strcmp(library, "share") == 0 ? EXTI_QUIRK_SHARE : EXTI_QUIRK_ISOLATE;
        e->library_by = quirk->id;
    }
    if (!rc && why) {
        e->refuse = why;
        e->refused_by = quirk->id;
    }
    return rc;
}

int exti__quirks_apply(const struct exti_quirks *q, const char *path, const struct exti_image *im,
                       struct exti_quirk_effect *out, struct exti_error *err)
{
    struct exti_quirk_effect e = {0};
    int rc = 0;

    for (size_t i = exti_quirks_next(q, path, im, 0); !rc && i < exti_quirks_count(q);
         i = exti_quirks_next(q, path, im, i + 1))
        rc = put_rule(&e, &q->rules[i], err);
    if (rc)
        exti__quirk_effect_free(&e);
    else
        *out = e;
    return rc;
}

void exti__quirk_effect_free(struct exti_quirk_effect *e)
{
    exti__free(e->renames);
    exti__free(e->redirects);
    *e = (struct exti_quirk_effect){0};
}

/* ---- all rules ---- */

bool exti__quirks_may_redirect(const struct exti_quirks *q, const char *path)
{
    for (size_t i = 0; q && i < q->count; i++) {
        const struct exti_json *rule = q->rules[i].rule;
        const char *file = exti__json_string(exti__json_get(rule, "match"), "file");

        if (!q->rules[i].disabled_by && exti__json_get(rule, "redirect") &&
            (!file || !strchr(file, '/') || exti__glob_matches(file, path, false)))
            return true;
    }
    return false;
}

static bool shapes_copies(const struct exti_quirk *quirk)
{
    static const char *const members[] = {"library", "rename", "refuse"};

    for (size_t i = 0; i < sizeof members / sizeof *members && !quirk->disabled_by; i++)
        if (exti__json_get(quirk->rule, members[i]))
            return true;
    return false;
}

int exti__quirks_key(const struct exti_quirks *q, char **out, struct exti_error *err)
{
    uint8_t hash[EXTI_SHA256_SIZE];
    struct exti_sha256 h;
    char *text = exti__calloc(2 * sizeof hash + 1, 1);
    size_t count = 0;
    int rc = text ? exti__sha256_init(&h, err) : exti__fail_nomem(err);

    if (rc) {
        exti__free(text);
        return rc;
    }
    for (size_t i = 0; q && i < q->count; i++) {
        if (!shapes_copies(&q->rules[i]))
            continue;
        exti__sha256_add(&h, q->rules[i].text, strlen(q->rules[i].text) + 1);
        count++;
    }
    rc = exti__sha256_end(&h, hash, err);
    exti__sha256_free(&h);
    for (size_t i = 0; count && i < sizeof hash; i++)
        snprintf(text + 2 * i, 3, "%02x", hash[i]);
    if (rc)
        exti__free(text);
    else
        *out = text;
    return rc;
}
