/* What the edits make of a file's libraries, search path and references, worked out from the public
 * header's words. */
#include <string.h>

#include "loader/base/mem.h"
#include "macho/macho_check_priv.h"

#define LOADER_PATH "@loader_path"

/* ---- @loader_path --------------------------------------------------------------------------------- */

/* Length of a leading @loader_path, else 0. */
static size_t loader_path_length(const char *p)
{
    const size_t n = strlen(LOADER_PATH);

    return strncmp(p, LOADER_PATH, n) == 0 && (!p[n] || p[n] == '/') ? n : 0;
}

/* `n` bytes of `text`, @loader_path spelt out where `origin` is given; owned by the expectation. */
static const char *keep(struct macho_expect *e, const char *text, size_t n, const char *origin,
                        struct exti_error *err)
{
    char **strings = exti__realloc_array(e->strings, e->string_count + 1, sizeof *strings), *s;
    const size_t skip = origin ? loader_path_length(text) : 0, lead = skip ? strlen(origin) : 0;

    if (strings)
        e->strings = strings;
    s = strings ? exti__alloc(lead + n - skip + 1) : NULL;
    if (!s) {
        exti__fail_nomem(err);
        return NULL;
    }
    memcpy(s, origin, lead);
    memcpy(s + lead, text + skip, n - skip);
    s[lead + n - skip] = 0;
    e->strings[e->string_count++] = s;
    return s;
}

/* ---- needed libraries ------------------------------------------------------------------------------ */

static size_t find(const struct macho_expect *e, const char *name)
{
    size_t i = 0;

    while (i < e->needed_count && strcmp(e->needed[i], name) != 0)
        i++;
    return i;
}

static void remove_at(struct macho_expect *e, size_t at)
{
    const size_t rest = --e->needed_count - at;

    memmove(&e->needed[at], &e->needed[at + 1], rest * sizeof *e->needed);
    memmove(&e->from[at], &e->from[at + 1], rest * sizeof *e->from);
}

static void edit_needed(struct macho_expect *e, const struct exti_needed *n)
{
    if (!n->from) {
        const size_t at = n->where == EXTI_NEEDED_FIRST ? 0 : e->needed_count;

        if (find(e, n->to) < e->needed_count)
            return;
        memmove(&e->needed[at + 1], &e->needed[at], (e->needed_count - at) * sizeof *e->needed);
        memmove(&e->from[at + 1], &e->from[at], (e->needed_count - at) * sizeof *e->from);
        e->needed[at] = n->to;
        e->from[at] = MACHO_NO_DYLIB;
        e->needed_count++;
        return;
    }
    for (size_t i = e->needed_count; i-- > 0;) {
        if (strcmp(e->needed[i], n->from) != 0)
            continue;
        if (n->to)
            e->needed[i] = n->to;
        else
            remove_at(e, i);
    }
}

static bool is_asked_for(const struct macho_check *c, const char *name)
{
    for (size_t i = 0; i < c->opts->needed_count; i++)
        if (c->opts->needed[i].to && strcmp(c->opts->needed[i].to, name) == 0)
            return true;
    return false;
}

/* Where the header has no room for bind_name, bind_short stands for it. */
static void take_short_name(struct macho_check *c)
{
    struct macho_expect *e = &c->expect;
    const struct exti_rewrite_opts *o = c->opts;
    size_t at = o->bind_name ? find(e, o->bind_name) : e->needed_count;

    if (!o->bind_short || at >= e->needed_count || at >= c->after.dylib_count ||
        strcmp(c->after.dylibs[at].name, o->bind_short) != 0)
        return;
    for (; at < e->needed_count; at++)
        if (strcmp(e->needed[at], o->bind_name) == 0)
            e->needed[at] = o->bind_short;
}

static int expect_needed(struct macho_check *c, struct exti_error *err)
{
    struct macho_expect *e = &c->expect;
    const struct macho_file *b = &c->before;
    const size_t room = b->dylib_count + c->opts->needed_count;

    e->needed = exti__calloc(room, sizeof *e->needed);
    e->from = exti__calloc(room, sizeof *e->from);
    if (!e->needed || !e->from)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < b->dylib_count; i++) {
        e->needed[i] = b->dylibs[i].name;
        e->from[i] = i;
    }
    e->needed_count = b->dylib_count;
    for (size_t i = 0; i < c->opts->needed_count; i++)
        edit_needed(e, &c->opts->needed[i]);
    for (size_t i = 0; c->opts->origin && i < e->needed_count; i++) {
        if (!loader_path_length(e->needed[i]) || is_asked_for(c, e->needed[i]))
            continue;
        e->needed[i] = keep(e, e->needed[i], strlen(e->needed[i]), c->opts->origin, err);
        if (!e->needed[i])
            return EXTI_E_NOMEM;
    }
    if (c->opts->bind_name) {
        size_t at = find(e, c->opts->bind_name);

        e->bind_ordinal = at < e->needed_count ? (int32_t)at + 1 : -1;
    }
    take_short_name(c);
    return 0;
}

/* ---- search paths ----------------------------------------------------------------------------------- */

static int add_path(struct macho_expect *e, const char *path, size_t n, const char *origin,
                    struct exti_error *err)
{
    const char **paths = exti__realloc_array(e->rpaths, e->rpath_count + 1, sizeof *paths);
    const char *s;

    if (!paths)
        return exti__fail_nomem(err);
    e->rpaths = paths;
    s = keep(e, path, n, origin, err);
    if (!s)
        return EXTI_E_NOMEM;
    /* A path that is there twice is an error to dyld, from SDK 26.0 on. */
    for (size_t i = 0; i < e->rpath_count; i++)
        if (strcmp(e->rpaths[i], s) == 0)
            return 0;
    e->rpaths[e->rpath_count++] = s;
    return 0;
}

static int add_paths(struct macho_expect *e, const char *list, struct exti_error *err)
{
    int rc = 0;

    while (!rc && list && *list) {
        const size_t n = strcspn(list, ":");

        if (n)
            rc = add_path(e, list, n, NULL, err);
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
    for (size_t i = 0; !rc && i < c->before.rpath_count; i++)
        rc = add_path(&c->expect, c->before.rpaths[i], strlen(c->before.rpaths[i]), o->origin, err);
    return rc;
}

/* ---- all together ------------------------------------------------------------------------------------- */

/* Where each library of the original is in the copy. */
static int map_dylibs(struct macho_check *c, struct exti_error *err)
{
    struct macho_expect *e = &c->expect;

    e->to = exti__calloc(c->before.dylib_count, sizeof *e->to);
    if (!e->to)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < c->before.dylib_count; i++)
        e->to[i] = MACHO_NO_DYLIB;
    for (size_t i = 0; i < e->needed_count; i++)
        if (e->from[i] != MACHO_NO_DYLIB)
            e->to[e->from[i]] = i;
    return 0;
}

int exti__macho_expect(struct macho_check *c, struct exti_error *err)
{
    int rc;

    if (!c->opts)
        return 0;
    c->expect.id = c->before.id;
    if (c->before.filetype == MH_DYLIB && c->opts->id)
        c->expect.id = c->opts->id;
    rc = expect_needed(c, err);
    if (!rc)
        rc = map_dylibs(c, err);
    return rc ? rc : expect_rpaths(c, err);
}

void exti__macho_expect_free(struct macho_expect *e)
{
    for (size_t i = 0; i < e->string_count; i++)
        exti__free(e->strings[i]);
    exti__free(e->strings);
    exti__free(e->needed);
    exti__free(e->from);
    exti__free(e->to);
    exti__free(e->rpaths);
    *e = (struct macho_expect){.id = NULL};
}

/* ---- references --------------------------------------------------------------------------------------- */

static int know_own(struct macho_check *c, struct exti_error *err)
{
    int rc = 0;

    if (!c->own_known) {
        rc = exti__macho_exports(c, &c->before, &c->own, err);
        exti__macho_exports_sort(&c->own);
        c->own_known = !rc;
    }
    return rc;
}

static int add_provided(struct macho_check *c, struct exti_span file, struct exti_error *err)
{
    struct macho_fat fat;
    int rc = exti__macho_fat_open(file, &fat, err);

    if (rc)
        return rc;
    for (size_t i = 0; !rc && i < fat.count; i++) {
        struct macho_file f;

        if (fat.slices[i].cputype != c->before.cputype ||
            !exti__macho_slice_handled(&fat.slices[i]))
            continue;
        rc = exti__macho_open(fat.slices[i].s, &f, err);
        if (rc)
            break;
        rc = exti__macho_exports(c, &f, &c->provided, err);
        exti__macho_close(&f);
        break;
    }
    exti__macho_fat_close(&fat);
    return rc;
}

static int know_provided(struct macho_check *c, struct exti_error *err)
{
    int rc = 0;

    if (c->provided_known)
        return 0;
    for (size_t i = 0; !rc && i < c->bind_count; i++)
        rc = add_provided(c, c->bind[i], err);
    exti__macho_exports_sort(&c->provided);
    c->provided_known = !rc;
    return rc;
}

static bool defines(const struct macho_exports *own, const char *symbol)
{
    const struct macho_exported *e = exti__macho_exports_find(own, symbol);

    return e && !(e->flags & EXPORT_SYMBOL_FLAGS_REEXPORT);
}

const char *exti__macho_library_of(const struct macho_file *f, int32_t ordinal)
{
    return ordinal > 0 && (size_t)ordinal <= f->dylib_count ? f->dylibs[ordinal - 1].name : NULL;
}

int exti__macho_kept_to_self(struct macho_check *c, const char *symbol, int *how,
                             struct exti_error *err)
{
    int rc;

    *how = 0;
    if (c->opts && !(c->opts->flags & EXTI_RW_CLEAR_UNIQUE))
        return 0;
    rc = know_own(c, err);
    if (!rc && defines(&c->own, symbol))
        *how = c->opts ? 2 : 1;
    return rc;
}

/* The same library still, by name.  Without a request any name may have changed, but one that is still
 * there means what it did. */
static bool follows_library(const struct macho_check *c, int32_t was, int32_t now)
{
    const char *old = exti__macho_library_of(&c->before, was),
               *new = exti__macho_library_of(&c->after, now);

    if (!old || !new)
        return was == now;
    if (c->opts) {
        const size_t to = c->expect.to[was - 1];

        return to != MACHO_NO_DYLIB && strcmp(new, c->expect.needed[to]) == 0;
    }
    if (strcmp(old, new) == 0)
        return true;
    for (size_t i = 0; i < c->after.dylib_count; i++)
        if (strcmp(c->after.dylibs[i].name, old) == 0)
            return false;
    return true;
}

/* What a reference that names no library, or one that is gone, has to be bound to. */
static int expect_unnamed(struct macho_check *c, const char *symbol, int32_t was, int32_t *want,
                          struct exti_error *err)
{
    int rc = 0;

    *want = was > 0 ? BIND_SPECIAL_DYLIB_FLAT_LOOKUP : was;
    if (c->opts->flags & EXTI_RW_SYMBOLIC && was == BIND_SPECIAL_DYLIB_FLAT_LOOKUP) {
        rc = know_own(c, err);
        if (!rc && defines(&c->own, symbol)) {
            *want = BIND_SPECIAL_DYLIB_SELF;
            return 0;
        }
    }
    if (!rc)
        rc = know_provided(c, err);
    if (!rc && exti__macho_exports_find(&c->provided, symbol))
        *want = c->expect.bind_ordinal;
    return rc;
}

/* Without a request: to any library, or to the file itself where that has the symbol. */
static int may_follow(struct macho_check *c, const char *symbol, int32_t now, bool *ok,
                      struct exti_error *err)
{
    int rc;

    *ok = now > 0;
    if (now != BIND_SPECIAL_DYLIB_SELF)
        return 0;
    rc = know_own(c, err);
    *ok = !rc && defines(&c->own, symbol);
    return rc;
}

static bool is_gone(const struct macho_check *c, int32_t ordinal)
{
    return c->opts && (size_t)ordinal <= c->before.dylib_count &&
           c->expect.to[ordinal - 1] == MACHO_NO_DYLIB;
}

int exti__macho_follows(struct macho_check *c, const char *symbol, int32_t was, int32_t now,
                        bool *ok, struct exti_error *err)
{
    int32_t want = was;
    int how, rc = 0;

    *ok = was == now && was == BIND_SPECIAL_DYLIB_SELF;
    if (was == BIND_SPECIAL_DYLIB_SELF)
        return 0;
    if (was == BIND_SPECIAL_DYLIB_WEAK_LOOKUP) {
        rc = exti__macho_kept_to_self(c, symbol, &how, err);
        *ok = (now == BIND_SPECIAL_DYLIB_SELF && how) || (now == was && how < 2);
        return rc;
    }
    if (was > 0 && !is_gone(c, was)) {
        *ok = follows_library(c, was, now);
        return 0;
    }
    if (!c->opts) {
        *ok = now == was;
        return *ok ? 0 : may_follow(c, symbol, now, ok, err);
    }
    rc = expect_unnamed(c, symbol, was, &want, err);
    *ok = now == want;
    return rc;
}
