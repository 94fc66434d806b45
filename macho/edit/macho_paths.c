/* The library search path: one LC_RPATH per entry. */
#include "macho/edit/macho_paths.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/edit/macho_items.h"

#define LOADER_PATH "@loader_path"

/* The new entries, in order. */
struct paths {
    const char **text;
    size_t count, cap;
};

static char *join_text(const char *head, size_t n, const char *tail, size_t m)
{
    char *p = exti__alloc(n + m + 1);

    if (!p)
        return NULL;
    memcpy(p, head, n);
    memcpy(p + n, tail, m);
    p[n + m] = 0;
    return p;
}

/* Length of `word` at the start of `text` if a folder separator or nothing follows it, otherwise
 * 0.  dyld expands @loader_path only at the start of a name. */
static size_t leading_token(const char *text, size_t n, const char *word)
{
    const size_t m = strlen(word);

    return n >= m && strncmp(text, word, m) == 0 && (n == m || text[m] == '/') ? m : 0;
}

int exti__macho_translate(struct macho_edit *e, const char **text, struct exti_error *err)
{
    const char *origin = e->b->opts->origin;
    const size_t n = strlen(*text), skip = origin ? leading_token(*text, n, LOADER_PATH) : 0;
    char *p;
    int rc;

    if (!skip)
        return 0;
    p = join_text(origin, strlen(origin), *text + skip, n - skip);
    rc = exti__macho_own(e, p, err);
    if (!rc)
        *text = p;
    return rc;
}

/* Skips duplicates. */
static int add_unique(struct paths *list, const char *text, struct exti_error *err)
{
    const char **p;

    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->text[i], text) == 0)
            return 0;
    p = exti__array_room(list->text, list->count, &list->cap, sizeof *p);
    if (!p)
        return exti__fail_nomem(err);
    list->text = p;
    list->text[list->count++] = text;
    return 0;
}

/* Appends the entries of a caller's list: separated by colons, with $ORIGIN for @loader_path. */
static int add_entries(struct macho_edit *e, struct paths *list, const char *entries,
                       struct exti_error *err)
{
    size_t n;
    int rc = 0;

    for (const char *p = entries; !rc && *p; p += p[n] ? n + 1 : n) {
        char *own;
        size_t skip;

        n = strcspn(p, ":");
        if (!n)
            continue;
        skip = leading_token(p, n, "$ORIGIN");
        skip = skip ? skip : leading_token(p, n, "${ORIGIN}");
        own = join_text(LOADER_PATH, skip ? strlen(LOADER_PATH) : 0, p + skip, n - skip);
        rc = exti__macho_own(e, own, err);
        if (!rc)
            rc = add_unique(list, own, err);
    }
    return rc;
}

/* *changed: the edits ask for another list than the file's. */
static int list_new_paths(struct macho_edit *e, struct paths *list, bool *changed,
                          struct exti_error *err)
{
    const struct exti_rewrite_opts *opts = e->b->opts;
    int rc = 0;

    *changed = opts->path_set || (opts->path_prepend && *opts->path_prepend);
    if (opts->path_prepend)
        rc = add_entries(e, list, opts->path_prepend, err);
    if (!rc && opts->path_set)
        return add_entries(e, list, opts->path_set, err);
    for (size_t i = 0; !rc && i < e->b->f->rpath_count; i++) {
        const char *old = e->b->f->rpaths[i], *text = old;

        rc = exti__macho_translate(e, &text, err);
        if (!rc)
            rc = add_unique(list, text, err);
        if (text != old)
            *changed = true;
    }
    return rc;
}

static bool is_unchanged_list(const struct macho_file *f, const struct paths *list)
{
    if (list->count != f->rpath_count)
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->text[i], f->rpaths[i]) != 0)
            return false;
    return true;
}

/* Removes the old commands.  Returns the index of the first, or the index after the libraries if
 * there was none. */
static size_t remove_old_paths(struct macho_edit *e)
{
    size_t kept = 0, at = SIZE_MAX, behind = e->count;

    for (size_t i = 0; i < e->count; i++) {
        if (e->items[i].cmd == LC_RPATH) {
            at = at == SIZE_MAX ? kept : at;
            continue;
        }
        e->items[kept++] = e->items[i];
        if (exti__macho_is_library(e->items[kept - 1].cmd))
            behind = kept;
    }
    e->count = kept;
    if (at != SIZE_MAX)
        return at;
    return behind < kept ? behind : kept;
}

static struct macho_item rpath_item(const struct macho_file *f, const char *text)
{
    struct macho_item item = {.cmd = LC_RPATH, .text = text};

    for (size_t i = 0, n = 0; i < f->command_count && !item.was; i++) {
        if (f->commands[i].cmd != LC_RPATH)
            continue;
        if (strcmp(f->rpaths[n++], text) != 0)
            continue;
        item.old = f->commands[i].s;
        item.was = text;
    }
    return item;
}

int exti__macho_edit_paths(struct macho_edit *e, struct exti_error *err)
{
    const struct exti_rewrite_opts *opts = e->b->opts;
    const struct macho_file *f = e->b->f;
    struct paths list = {0};
    bool changed;
    size_t at;
    int rc;

    if (!opts->origin && !opts->path_set && !opts->path_prepend)
        return 0;
    rc = list_new_paths(e, &list, &changed, err);
    if (!rc && changed && !is_unchanged_list(f, &list)) {
        at = remove_old_paths(e);
        for (size_t i = 0; !rc && i < list.count; i++)
            rc = exti__macho_insert(e, at + i, rpath_item(f, list.text[i]), err);
    }
    exti__free(list.text);
    return rc;
}
