#include "elf/edit/elf_rename.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/read/elf_hash.h"
#include "elf/read/elf_symbols.h"
#include "elf/read/elf_version.h"

struct renames {
    const struct exti_rename *list;
    size_t *from, *to; /* owned hash sets of indices into `list`, plus 1: by old and by new name */
    size_t slots;
    size_t longest; /* length of the longest name in `list` */
};

static const char *rename_key(const struct renames *r, const size_t *set, size_t i)
{
    return set == r->from ? r->list[i].from : r->list[i].to;
}

/* The slot of `name` in `set`: the one that has it, or a free one. */
static size_t *rename_slot(const struct renames *r, size_t *set, const char *name)
{
    size_t i = exti__elf_gnu_hash(name) & (r->slots - 1);

    while (set[i] && strcmp(rename_key(r, set, set[i] - 1), name) != 0)
        i = (i + 1) & (r->slots - 1);
    return &set[i];
}

static const struct exti_rename *find_rename(const struct renames *r, size_t *set, const char *name)
{
    size_t at;

    /* Bounds the work: a hostile file's names may be long and overlap. */
    if (strnlen(name, r->longest + 1) > r->longest)
        return NULL;
    at = *rename_slot(r, set, name);
    return at ? &r->list[at - 1] : NULL;
}

static int add_rename(struct renames *r, size_t i, struct exti_error *err)
{
    const struct exti_rename *item = &r->list[i];
    size_t *slot = rename_slot(r, r->from, item->from);
    size_t n = strlen(item->from), m = strlen(item->to);

    if (!n || !m)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "rename of '%s' to '%s': an empty name",
                          item->from, item->to);
    if (*slot && strcmp(r->list[*slot - 1].to, item->to) != 0)
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "rename of '%s' to both '%s' and '%s'",
                          item->from, r->list[*slot - 1].to, item->to);
    *slot = i + 1;
    r->longest = n > r->longest ? n : r->longest;
    r->longest = m > r->longest ? m : r->longest;
    return 0;
}

static int build_renames(struct renames *r, const struct exti_rewrite_opts *opts,
                         struct exti_error *err)
{
    int rc = 0;

    *r = (struct renames){.list = opts->renames, .slots = 64};
    while (r->slots < opts->rename_count * 2)
        r->slots *= 2;
    r->from = exti__calloc(r->slots, sizeof *r->from);
    r->to = exti__calloc(r->slots, sizeof *r->to);
    if (!r->from || !r->to)
        return exti__fail_nomem(err);
    for (size_t i = 0; !rc && i < opts->rename_count; i++)
        if (strcmp(opts->renames[i].from, opts->renames[i].to) != 0)
            rc = add_rename(r, i, err);
    return rc;
}

/* Records that a symbol gets the new name of `item`.  No other symbol may get that name, and no
 * rename may replace it. */
static int claim_new_name(struct renames *r, const struct exti_rename *item, struct exti_error *err)
{
    size_t *slot = rename_slot(r, r->to, item->to);

    if (*slot && strcmp(r->list[*slot - 1].from, item->from) != 0)
        return exti__fail(err, EXTI_E_UNSUPPORTED, EXTI_NO_OFFSET,
                          "renames of '%s' and '%s' to the same name, '%s'", item->from,
                          r->list[*slot - 1].from, item->to);
    if (find_rename(r, r->from, item->to))
        return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET,
                          "rename of '%s' to '%s': another rename replaces that name", item->from,
                          item->to);
    *slot = (size_t)(item - r->list) + 1;
    return 0;
}

static int rename_symbols(struct elf_edit *e, struct renames *r,
                          const struct elf_version_names *versions, struct exti_error *err)
{
    const struct elf_file *f = e->f;
    const struct exti_rename *item;
    const char *name;
    int rc = 0;

    for (size_t i = 1; i < f->sym_count; i++) {
        rc = exti__elf_string(f, f->sym[i].st_name, "DT_SYMTAB: symbol name", &name, err);
        if (rc)
            return rc;
        item = find_rename(r, r->from, name);
        if (!item || exti__elf_is_version_node(versions, i, name))
            continue;
        rc = claim_new_name(r, item, err);
        if (rc)
            return rc;
        e->names[i] = item->to;
    }
    for (size_t i = 1; i < f->sym_count; i++) {
        name = (const char *)f->strtab.s.p + f->sym[i].st_name;
        if (!e->names[i] && find_rename(r, r->to, name))
            return exti__fail(err, EXTI_E_UNSUPPORTED, exti__elf_sym_offset(f, i),
                              "rename to '%s': the file already has a symbol of that name", name);
    }
    return 0;
}

int exti__elf_edit_names(struct elf_edit *e, struct exti_error *err)
{
    struct elf_version_names versions;
    struct renames r;
    int rc;

    if (!e->opts->rename_count)
        return 0;
    e->names = exti__calloc(e->f->sym_count, sizeof *e->names);
    e->name_at = exti__calloc(e->f->sym_count, sizeof *e->name_at);
    if (!e->names || !e->name_at)
        return exti__fail_nomem(err);
    rc = exti__elf_version_names(e->f, &versions, err);
    if (rc)
        return rc;
    rc = build_renames(&r, e->opts, err);
    if (!rc)
        rc = rename_symbols(e, &r, &versions, err);
    exti__free(r.from);
    exti__free(r.to);
    exti__free(versions.names);
    return rc;
}
