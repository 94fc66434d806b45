/* The libraries and search paths that a request leads to, derived from the public header's
 * contract and independently of edit/. */
#include "macho/check/macho_check_expect.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

#define LOADER_PATH "@loader_path"
#define LIBSYSTEM "/usr/lib/libSystem.B.dylib"

/* ---- @loader_path ---------------------------------------------------------------------------- */

/* Length of a leading @loader_path, otherwise 0. */
static size_t loader_path_length(const char *p)
{
    const size_t n = strlen(LOADER_PATH);

    return strncmp(p, LOADER_PATH, n) == 0 && (!p[n] || p[n] == '/') ? n : 0;
}

/* `lead` followed by `n` bytes of `text`; e->strings owns it. */
static const char *compose_text(struct macho_expect *e, const char *lead, const char *text,
                                size_t n, struct exti_error *err)
{
    char **strings = exti__realloc_array(e->strings, e->string_count + 1, sizeof *strings), *s;
    const size_t skip = strlen(lead);

    if (strings)
        e->strings = strings;
    s = strings ? exti__alloc(skip + n + 1) : NULL;
    if (!s) {
        exti__fail_nomem(err);
        return NULL;
    }
    memcpy(s, lead, skip);
    memcpy(s + skip, text, n);
    s[skip + n] = 0;
    e->strings[e->string_count++] = s;
    return s;
}

/* `text` with @loader_path replaced by `origin` if that is given. */
static const char *spell_resolved(struct macho_expect *e, const char *text, size_t n,
                                  const char *origin, struct exti_error *err)
{
    const size_t skip = origin ? loader_path_length(text) : 0;

    return compose_text(e, skip ? origin : "", text + skip, n - skip, err);
}

/* ---- needed libraries ------------------------------------------------------------------------ */

static size_t needed_index(const struct macho_expect *e, const char *name)
{
    size_t i = 0;

    while (i < e->needed_count && strcmp(e->needed[i].name, name) != 0)
        i++;
    return i;
}

static void insert_at(struct macho_expect *e, size_t at, const char *name)
{
    memmove(&e->needed[at + 1], &e->needed[at], (e->needed_count - at) * sizeof *e->needed);
    e->needed[at] = (struct macho_want){name, MACHO_NO_DYLIB, LC_LOAD_DYLIB};
    e->needed_count++;
}

static void remove_at(struct macho_expect *e, size_t at)
{
    e->needed_count--;
    memmove(&e->needed[at], &e->needed[at + 1], (e->needed_count - at) * sizeof *e->needed);
}

/* bind_short names the same library as bind_name. */
static bool has_needed(const struct macho_check *c, const char *name)
{
    const struct macho_expect *e = &c->expect;
    const struct exti_rewrite_opts *o = c->opts;

    return needed_index(e, name) < e->needed_count ||
           (o->bind_short && strcmp(name, o->bind_name) == 0 &&
            needed_index(e, o->bind_short) < e->needed_count);
}

/* dyld gives a file that names no library libSystem as library 1. */
static void add_needed(struct macho_check *c, const struct exti_needed *n)
{
    struct macho_expect *e = &c->expect;
    const bool implied = !c->before.dylib_count;

    if (has_needed(c, n->to))
        return;
    if (implied && needed_index(e, LIBSYSTEM) == e->needed_count)
        insert_at(e, e->needed_count, LIBSYSTEM);
    if (needed_index(e, n->to) == e->needed_count)
        insert_at(e, n->where == EXTI_NEEDED_FIRST ? implied : e->needed_count, n->to);
}

static void edit_needed(struct macho_check *c, const struct exti_needed *n)
{
    struct macho_expect *e = &c->expect;

    if (!n->from) {
        add_needed(c, n);
        return;
    }
    for (size_t i = e->needed_count; i-- > 0;) {
        if (strcmp(e->needed[i].name, n->from) != 0)
            continue;
        if (n->to)
            e->needed[i].name = n->to;
        else
            remove_at(e, i);
    }
    for (size_t i = 0; i < c->before.dylib_count; i++)
        if (e->named[i] && strcmp(e->named[i], n->from) == 0)
            e->named[i] = n->to;
}

static bool is_requested_name(const struct macho_check *c, const char *name)
{
    for (size_t i = 0; i < c->opts->needed_count; i++)
        if (c->opts->needed[i].to && strcmp(c->opts->needed[i].to, name) == 0)
            return true;
    return c->opts->bind_short && strcmp(c->opts->bind_short, name) == 0;
}

static bool is_renamed_want(const struct macho_check *c, const struct macho_want *w)
{
    return w->from == MACHO_NO_DYLIB || strcmp(c->before.dylibs[w->from].name, w->name) != 0;
}

/* Rank of a command: one library that replaces two gets the higher. */
static int strength(uint32_t cmd)
{
    return cmd == LC_REEXPORT_DYLIB    ? 4
           : cmd == LC_LOAD_DYLIB      ? 3
           : cmd == LC_LOAD_WEAK_DYLIB ? 1
                                       : 2;
}

/* If an edit gives two libraries the same name, one remains, at the place of the one that
 * already had the name. */
static void join_needed(struct macho_check *c)
{
    struct macho_expect *e = &c->expect;

    for (size_t i = 1; i < e->needed_count; i++)
        for (size_t k = 0; k < i; k++) {
            struct macho_want *a = &e->needed[k], *b = &e->needed[i];
            const uint32_t cmd = strength(a->cmd) < strength(b->cmd) ? b->cmd : a->cmd;
            const size_t gone = is_renamed_want(c, b) ? i : k;

            if (strcmp(a->name, b->name) != 0 || (!is_renamed_want(c, a) && !is_renamed_want(c, b)))
                continue;
            a->cmd = b->cmd = cmd;
            remove_at(e, gone);
            i--;
            break;
        }
}

/* The copy may use bind_short where bind_name does not fit the header. */
static void take_short_name(struct macho_check *c)
{
    struct macho_expect *e = &c->expect;
    const struct exti_rewrite_opts *o = c->opts;
    const size_t at = o->bind_name ? needed_index(e, o->bind_name) : e->needed_count;

    if (!o->bind_short || at >= e->needed_count || at >= c->after.dylib_count ||
        strcmp(c->after.dylibs[at].name, o->bind_short) != 0)
        return;
    e->needed[at].name = o->bind_short;
    for (size_t i = 0; i < c->before.dylib_count; i++)
        if (e->named[i] && strcmp(e->named[i], o->bind_name) == 0)
            e->named[i] = o->bind_short;
}

static int resolve_loader_path(struct macho_check *c, const char **name, struct exti_error *err)
{
    if (!*name || !c->opts->origin || !loader_path_length(*name) || is_requested_name(c, *name))
        return 0;
    *name = spell_resolved(&c->expect, *name, strlen(*name), c->opts->origin, err);
    return *name ? 0 : EXTI_E_NOMEM;
}

/* The ordinal of bind_name's library in the copy. */
static int32_t bind_ordinal(const struct macho_check *c)
{
    const struct macho_expect *e = &c->expect;
    size_t at = needed_index(e, c->opts->bind_name);

    if (at == e->needed_count && c->opts->bind_short)
        at = needed_index(e, c->opts->bind_short);
    return (int32_t)at + 1;
}

static int expect_needed(struct macho_check *c, struct exti_error *err)
{
    struct macho_expect *e = &c->expect;
    const struct macho_file *b = &c->before;
    int rc = 0;

    e->needed = exti__calloc(b->dylib_count + c->opts->needed_count + 1, sizeof *e->needed);
    e->named = exti__calloc(b->dylib_count, sizeof *e->named);
    if (!e->needed || !e->named)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < b->dylib_count; i++) {
        const uint32_t cmd = b->commands[b->dylibs[i].command].cmd;

        e->needed[i] = (struct macho_want){b->dylibs[i].name, i, cmd};
        e->named[i] = b->dylibs[i].name;
    }
    e->needed_count = b->dylib_count;
    for (size_t i = 0; i < c->opts->needed_count; i++)
        edit_needed(c, &c->opts->needed[i]);
    for (size_t i = 0; !rc && i < e->needed_count; i++)
        rc = resolve_loader_path(c, &e->needed[i].name, err);
    for (size_t i = 0; !rc && i < b->dylib_count; i++)
        rc = resolve_loader_path(c, &e->named[i], err);
    if (rc)
        return rc;
    join_needed(c);
    if (c->opts->bind_name)
        e->bind_ordinal = bind_ordinal(c);
    take_short_name(c);
    return 0;
}

/* ---- search paths ---------------------------------------------------------------------------- */

static int add_path(struct macho_expect *e, const char *s, struct exti_error *err)
{
    const char **paths;

    if (!s)
        return EXTI_E_NOMEM;
    /* dyld refuses duplicates from SDK 26.0 on. */
    for (size_t i = 0; i < e->rpath_count; i++)
        if (strcmp(e->rpaths[i], s) == 0)
            return 0;
    paths = exti__realloc_array(e->rpaths, e->rpath_count + 1, sizeof *paths);
    if (!paths)
        return exti__fail_nomem(err);
    e->rpaths = paths;
    e->rpaths[e->rpath_count++] = s;
    return 0;
}

/* Callers write $ORIGIN for @loader_path in every format. */
static int add_paths(struct macho_expect *e, const char *list, struct exti_error *err)
{
    static const char *const words[] = {"$ORIGIN", "${ORIGIN}"};
    int rc = 0;

    while (!rc && list && *list) {
        const size_t n = strcspn(list, ":");
        size_t skip = 0;

        for (size_t i = 0; i < 2; i++) {
            const size_t m = strlen(words[i]);

            if (n >= m && strncmp(list, words[i], m) == 0 && (n == m || list[m] == '/'))
                skip = m;
        }
        if (n)
            rc = add_path(e, compose_text(e, skip ? LOADER_PATH : "", list + skip, n - skip, err),
                          err);
        list += n + (list[n] == ':');
    }
    return rc;
}

static int expect_rpaths(struct macho_check *c, struct exti_error *err)
{
    const struct exti_rewrite_opts *o = c->opts;
    int rc = add_paths(&c->expect, o->path_prepend, err);

    if (!rc && o->path_set)
        return add_paths(&c->expect, o->path_set, err);
    for (size_t i = 0; !rc && i < c->before.rpath_count; i++) {
        const char *path = c->before.rpaths[i];

        rc = add_path(&c->expect, spell_resolved(&c->expect, path, strlen(path), o->origin, err),
                      err);
    }
    return rc;
}

/* ---- the whole request ----------------------------------------------------------------------- */

int exti__macho_expect(struct macho_check *c, struct exti_error *err)
{
    int rc;

    if (!c->opts)
        return 0;
    c->expect.id = c->before.id;
    if (c->before.filetype == MH_DYLIB && c->opts->id)
        c->expect.id = c->opts->id;
    rc = expect_needed(c, err);
    return rc ? rc : expect_rpaths(c, err);
}

void exti__macho_expect_free(struct macho_expect *e)
{
    for (size_t i = 0; i < e->string_count; i++)
        exti__free(e->strings[i]);
    exti__free(e->strings);
    exti__free(e->needed);
    exti__free(e->named);
    exti__free(e->rpaths);
    *e = (struct macho_expect){.id = NULL};
}
