/* What the edits make of a file's dynamic strings, worked out from the public header's words. */
#include <string.h>

#include "elf/elf_check_priv.h"
#include "loader/base/buf.h"
#include "loader/base/mem.h"

#define MAX_PATH_BYTES ((size_t)1 << 30)

/* FNV-1a: the table must not depend on either ELF hash. */
static size_t spread(const char *s)
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
        size_t at = spread(o->renames[i].from) & (e->rename_slots - 1);

        while (e->renames[at])
            at = (at + 1) & (e->rename_slots - 1);
        e->renames[at] = i + 1;
    }
    return 0;
}

const char *exti__elf_renamed(const struct elf_check *c, const char *name)
{
    const struct elf_expect *e = &c->expect;

    if (!e->rename_slots)
        return name;
    for (size_t at = spread(name) & (e->rename_slots - 1); e->renames[at];
         at = (at + 1) & (e->rename_slots - 1)) {
        const struct exti_rename *r = &c->opts->renames[e->renames[at] - 1];

        if (strcmp(r->from, name) == 0)
            return r->to;
    }
    return name;
}

const char *exti__elf_needed_renamed(const struct elf_check *c, const char *name)
{
    for (size_t i = 0; i < c->opts->needed_count; i++) {
        const struct exti_needed *n = &c->opts->needed[i];

        if (n->from && n->to && strcmp(n->from, name) == 0)
            name = n->to;
    }
    return name;
}

static size_t find(const struct elf_expect *e, const char *name)
{
    size_t i = 0;

    while (i < e->needed_count && strcmp(e->needed[i], name) != 0)
        i++;
    return i;
}

static void edit_needed(struct elf_expect *e, const struct exti_needed *n)
{
    size_t at = find(e, n->from ? n->from : n->to);

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

static int expect_needed(struct elf_check *c, struct exti_error *err)
{
    struct elf_expect *e = &c->expect;
    const struct elf_file *f = &c->before;

    e->needed = exti__calloc(f->dyn_count + c->opts->needed_count, sizeof *e->needed);
    if (!e->needed)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < f->dyn_count; i++) {
        if (f->dyn[i].d_tag != DT_NEEDED)
            continue;
        e->needed[e->needed_count] = exti__elf_text(f, f->dyn[i].d_un.d_val);
        if (!e->needed[e->needed_count])
            return exti__fail(err, EXTI_E_FORMAT, exti__elf_dyn_offset(f, i),
                              "DT_NEEDED: its name lies outside DT_STRTAB");
        e->needed_count++;
    }
    for (size_t i = 0; i < c->opts->needed_count; i++)
        edit_needed(e, &c->opts->needed[i]);
    return 0;
}

/* Length of a leading $ORIGIN or ${ORIGIN}, else 0.  ld.so takes the bare form only where the name
 * ends there. */
static size_t origin_length(const char *p)
{
    if (strncmp(p, "${ORIGIN}", 9) == 0)
        return 9;
    if (strncmp(p, "$ORIGIN", 7) == 0 && (!p[7] || p[7] == '/' || p[7] == ':'))
        return 7;
    return 0;
}

static int append_kept(struct exti_buf *b, const char *path, const char *origin,
                       struct exti_error *err)
{
    int rc = 0;

    while (!rc && *path) {
        size_t skip = origin ? origin_length(path) : 0;

        if (skip)
            rc = exti__buf_append(b, origin, strlen(origin), err);
        else
            rc = exti__buf_append(b, path, 1, err);
        path += skip ? skip : 1;
    }
    return rc;
}

static int expect_path(struct elf_check *c, struct exti_error *err)
{
    const struct exti_rewrite_opts *o = c->opts;
    const char *run = exti__elf_tag_text(&c->before, DT_RUNPATH);
    const char *old = run ? run : exti__elf_tag_text(&c->before, DT_RPATH);
    const char *kept = o->path_set ? o->path_set : old, *first = o->path_prepend;
    struct exti_buf b = exti__buf(MAX_PATH_BYTES);
    int rc = 0;

    c->expect.path_tag = old && !run ? DT_RPATH : DT_RUNPATH;
    if (first && *first)
        rc = exti__buf_append(&b, first, strlen(first), err);
    if (!rc && kept && *kept && b.n)
        rc = exti__buf_append(&b, ":", 1, err);
    if (!rc && kept)
        rc = append_kept(&b, kept, o->path_set ? NULL : o->origin, err);
    /* An empty path that was there and that no edit names stays. */
    if (!rc && (b.n || (old && !o->path_set)))
        rc = exti__buf_append(&b, "", 1, err);
    if (rc)
        exti__buf_free(&b);
    c->expect.path = (char *)b.p;
    return rc;
}

int exti__elf_expect(struct elf_check *c, struct exti_error *err)
{
    int rc;

    if (!c->opts)
        return 0;
    c->expect.id = c->opts->id ? c->opts->id : exti__elf_tag_text(&c->before, DT_SONAME);
    rc = expect_needed(c, err);
    if (!rc)
        rc = expect_path(c, err);
    return rc ? rc : map_renames(c, err);
}

void exti__elf_expect_free(struct elf_expect *e)
{
    exti__free(e->needed);
    exti__free(e->path);
    exti__free(e->renames);
}
