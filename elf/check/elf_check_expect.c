/* Written from the public header's description of the edits, not from the code of edit/. */
#include "elf/check/elf_check_expect.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define MAX_PATH_BYTES ((size_t)1 << 30)

/* FNV-1a, so that the table depends on neither ELF hash. */
static size_t fnv_hash(const char *s)
{
    uint64_t h = 0xcbf29ce484222325;

    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3;
    return (size_t)(h ^ h >> 32);
}

static int map_renames(struct elf_check *c, struct exti_error *err)
{
    struct elf_expect *e = &c->expect;
    const struct exti_rewrite_opts *o = c->opts;

    if (!o->rename_count)
        return 0;
    for (e->rename_slots = 2; e->rename_slots / 2 < o->rename_count; e->rename_slots *= 2)
        ;
    e->renames = exti__calloc(e->rename_slots, sizeof *e->renames);
    if (!e->renames)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < o->rename_count; i++) {
        size_t n = strlen(o->renames[i].from);
        size_t at = fnv_hash(o->renames[i].from) & (e->rename_slots - 1);

        while (e->renames[at])
            at = (at + 1) & (e->rename_slots - 1);
        e->renames[at] = i + 1;
        if (n > e->rename_longest)
            e->rename_longest = n;
    }
    return 0;
}

const char *exti__elf_renamed(const struct elf_check *c, const char *name)
{
    const struct elf_expect *e = &c->expect;

    if (!e->rename_slots || strnlen(name, e->rename_longest + 1) > e->rename_longest)
        return name;
    for (size_t at = fnv_hash(name) & (e->rename_slots - 1); e->renames[at];
         at = (at + 1) & (e->rename_slots - 1)) {
        const struct exti_rename *r = &c->opts->renames[e->renames[at] - 1];

        if (strcmp(r->from, name) == 0)
            return r->to;
    }
    return name;
}

/* ---- $ORIGIN --------------------------------------------------------------------------------- */

static bool is_identifier(char ch)
{
    return (ch >= 'A' && ch <= 'Z') || (ch >= 'a' && ch <= 'z') || (ch >= '0' && ch <= '9') ||
           ch == '_';
}

/* The length of a leading $ORIGIN or ${ORIGIN}, or 0, as glibc's is_dst (dl-load.c) sees it. */
static size_t origin_length(const char *p)
{
    if (strncmp(p, "${ORIGIN}", 9) == 0)
        return 9;
    if (strncmp(p, "$ORIGIN", 7) == 0 && !is_identifier(p[7]))
        return 7;
    return 0;
}

/* Appends `text` with $ORIGIN spelt out if `origin` is given. */
static int append_translated(struct exti_buf *b, const char *text, const char *origin,
                             struct exti_error *err)
{
    int rc = 0;

    while (!rc && *text) {
        size_t skip = origin ? origin_length(text) : 0;

        if (skip)
            rc = exti__buf_append(b, origin, strlen(origin), err);
        else
            rc = exti__buf_append(b, text, 1, err);
        text += skip ? skip : 1;
    }
    return rc;
}

/* ---- needed libraries ------------------------------------------------------------------------ */

/* The index of the first library called `name`, or needed_count. */
static size_t find_needed(const struct elf_expect *e, const char *name)
{
    size_t i = 0;

    while (i < e->needed_count && strcmp(e->needed[i], name) != 0)
        i++;
    return i;
}

static void apply_needed_edit(struct elf_expect *e, const struct exti_needed *n)
{
    size_t at = find_needed(e, n->from ? n->from : n->to);

    if (n->from && n->to) {
        for (; at < e->needed_count; at++)
            if (strcmp(e->needed[at], n->from) == 0)
                e->needed[at] = n->to;
    } else if (n->from) {
        size_t kept = at;

        for (; at < e->needed_count; at++)
            if (strcmp(e->needed[at], n->from) != 0)
                e->needed[kept++] = e->needed[at];
        e->needed_count = kept;
    } else if (at == e->needed_count) {
        size_t to = n->where == EXTI_NEEDED_FIRST ? 0 : at;

        memmove(&e->needed[to + 1], &e->needed[to], (at - to) * sizeof *e->needed);
        e->needed[to] = n->to;
        e->needed_count++;
    }
}

static bool is_put_by_edit(const struct elf_check *c, const char *name)
{
    for (size_t i = 0; i < c->opts->needed_count; i++)
        if (c->opts->needed[i].to && strcmp(c->opts->needed[i].to, name) == 0)
            return true;
    return false;
}

/* Spells out $ORIGIN in library `i` unless an edit put that name there. */
static int translate_needed(struct elf_check *c, size_t i, struct exti_error *err)
{
    struct elf_expect *e = &c->expect;
    struct exti_buf b = exti__buf(MAX_PATH_BYTES);
    int rc;

    if (!c->opts->origin || !strchr(e->needed[i], '$') || is_put_by_edit(c, e->needed[i]))
        return 0;
    rc = append_translated(&b, e->needed[i], c->opts->origin, err);
    if (!rc)
        rc = exti__buf_append(&b, "", 1, err);
    if (rc) {
        exti__buf_free(&b);
        return rc;
    }
    e->translated[e->translated_count++] = (char *)b.p;
    e->needed[i] = (char *)b.p;
    return 0;
}

static int expect_needed(struct elf_check *c, struct exti_error *err)
{
    struct elf_expect *e = &c->expect;
    const struct elf_file *f = &c->before;
    const size_t room = f->dyn_count + c->opts->needed_count;
    int rc = 0;

    e->needed = exti__calloc(room, sizeof *e->needed);
    e->translated = exti__calloc(room, sizeof *e->translated);
    if (!e->needed || !e->translated)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < f->dyn_count; i++) {
        if (f->dyn[i].d_tag != DT_NEEDED)
            continue;
        e->needed[e->needed_count] = exti__elf_check_text(f, f->dyn[i].d_un.d_val);
        if (!e->needed[e->needed_count])
            return exti__fail(err, EXTI_E_FORMAT, exti__elf_dyn_offset(f, i),
                              "DT_NEEDED: its name lies outside DT_STRTAB");
        e->needed_count++;
    }
    for (size_t i = 0; i < c->opts->needed_count; i++)
        apply_needed_edit(e, &c->opts->needed[i]);
    for (size_t i = 0; !rc && i < e->needed_count; i++)
        rc = translate_needed(c, i, err);
    return rc;
}

bool exti__elf_follows_needed(const struct elf_check *c, const char *was, const char *name)
{
    const char *origin = c->opts->origin;

    for (size_t i = 0; i < c->opts->needed_count; i++) {
        const struct exti_needed *n = &c->opts->needed[i];

        if (n->from && n->to && strcmp(n->from, was) == 0)
            was = n->to;
    }
    for (; *was && *name; was++, name++) {
        size_t skip = origin ? origin_length(was) : 0;

        if (skip && strncmp(name, origin, strlen(origin)) == 0) {
            was += skip - 1;
            name += strlen(origin) - 1;
        } else if (*was != *name) {
            return false;
        }
    }
    return *was == *name;
}

/* ---- search paths ---------------------------------------------------------------------------- */

/* Whether `path` starts with the entries of `first`, in which `origin` (unless NULL) stands for
 * $ORIGIN. */
static bool path_starts_with(const char *path, const char *first, const char *origin)
{
    for (size_t skip, n; *first; path += n, first += skip ? skip : 1) {
        skip = origin ? origin_length(first) : 0;
        n = skip ? strlen(origin) : 1;
        if (strncmp(path, skip ? origin : first, n) != 0)
            return false;
    }
    return !*path || *path == ':';
}

/* `path` without the entries of `first` at its start, if an earlier edit put them there.  An
 * original's own $ORIGIN is another folder, so in a file that is not known to be a copy the entries
 * count only if they follow once more with $ORIGIN spelt out. */
static const char *without_first(const struct elf_check *c, const char *path, const char *first)
{
    const char *soname = exti__elf_check_tag_text(&c->before, DT_SONAME);
    bool is_copy = soname && c->opts->id && strcmp(soname, c->opts->id) == 0;
    const char *origin = is_copy ? NULL : c->opts->origin;
    size_t n = strlen(first);

    if (!n || !path_starts_with(path, first, NULL))
        return path;
    if (origin && origin_length(first) &&
        !(path[n] && path_starts_with(path + n + 1, first, origin)))
        return path;
    return path + n + (path[n] == ':');
}

/* Gives the new text for `old` (NULL: none); `searched` says whether loaders use this tag. */
static int expect_path(const struct elf_check *c, const char *old, bool searched, char **out,
                       struct exti_error *err)
{
    const struct exti_rewrite_opts *o = c->opts;
    const char *first = searched && o->path_prepend ? o->path_prepend : "";
    const char *set = searched ? o->path_set : NULL;
    const char *kept = set ? set : without_first(c, old ? old : "", first);
    struct exti_buf b = exti__buf(MAX_PATH_BYTES);
    int rc = exti__buf_append(&b, first, strlen(first), err);

    if (!rc && *kept && b.n)
        rc = exti__buf_append(&b, ":", 1, err);
    if (!rc)
        rc = append_translated(&b, kept, set ? NULL : o->origin, err);
    /* An empty path stays if no edit sets another one. */
    if (!rc && (b.n || (old && !set)))
        rc = exti__buf_append(&b, "", 1, err);
    if (rc)
        exti__buf_free(&b);
    *out = (char *)b.p;
    return rc;
}

static bool removes_path(const struct exti_rewrite_opts *o)
{
    return o->path_set && !*o->path_set && !(o->path_prepend && *o->path_prepend);
}

static int expect_paths(struct elf_check *c, struct exti_error *err)
{
    const char *run = exti__elf_check_tag_text(&c->before, DT_RUNPATH);
    const char *old = exti__elf_check_tag_text(&c->before, DT_RPATH);
    int rc = 0;

    /* Both go: DT_RPATH would take effect if only DT_RUNPATH went. */
    if (removes_path(c->opts))
        return 0;
    if (old)
        rc = expect_path(c, old, !run, &c->expect.rpath, err);
    if (!rc && (run || !old))
        rc = expect_path(c, run, true, &c->expect.runpath, err);
    return rc;
}

int exti__elf_expect(struct elf_check *c, struct exti_error *err)
{
    int rc;

    if (!c->opts)
        return 0;
    c->expect.id = c->opts->id ? c->opts->id : exti__elf_check_tag_text(&c->before, DT_SONAME);
    rc = expect_needed(c, err);
    if (!rc)
        rc = expect_paths(c, err);
    return rc ? rc : map_renames(c, err);
}

void exti__elf_expect_free(struct elf_expect *e)
{
    for (size_t i = 0; i < e->translated_count; i++)
        exti__free(e->translated[i]);
    exti__free(e->translated);
    exti__free(e->needed);
    exti__free(e->rpath);
    exti__free(e->runpath);
    exti__free(e->renames);
}
