/* The list of needed libraries, whose order is the order of symbol lookup. */
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/edit/elf_plan.h"

/* The libraries in their new order.  They go back into the DT_NEEDED entries in that order, so that
 * no other entry changes its place. */
struct needed {
    struct library {
        const char *was;  /* NULL for an added one */
        const char *text; /* NULL for a removed one */
    } *item;
    size_t count, cap;
};

/* More than any linker's command line gives; keeps the work on a hostile file in bounds. */
enum { MOST = 4096 };

static struct library *find(const struct needed *n, const char *text)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->item[i].text && strcmp(n->item[i].text, text) == 0)
            return &n->item[i];
    return NULL;
}

static int insert(struct needed *n, size_t at, struct library item, struct exti_error *err)
{
    if (n->count == n->cap) {
        size_t cap = n->cap ? n->cap * 2 : 16;
        struct library *p = exti__realloc_array(n->item, cap, sizeof *p);

        if (!p)
            return exti__fail_nomem(err);
        n->item = p;
        n->cap = cap;
    }
    memmove(n->item + at + 1, n->item + at, (n->count - at) * sizeof *n->item);
    n->item[at] = item;
    n->count++;
    return 0;
}

static int collect(const struct elf_edit *e, struct needed *n, struct exti_error *err)
{
    for (size_t i = 0; i < e->tag_count; i++) {
        struct library item;
        int rc;

        if (e->tags[i].d.d_tag != DT_NEEDED)
            continue;
        if (n->count == MOST)
            return exti__fail(err, EXTI_E_UNSUPPORTED, exti__elf_dyn_offset(e->f, i),
                              "DT_NEEDED: more than %d libraries", MOST);
        rc = exti__elf_str(e->f, e->tags[i].d.d_un.d_val, "DT_NEEDED", &item.was, err);
        item.text = item.was;
        if (!rc)
            rc = insert(n, n->count, item, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int apply(struct needed *n, const struct exti_needed *op, struct exti_error *err)
{
    bool found = false;

    if (!op->from) {
        if (find(n, op->to))
            return 0;
        return insert(n, op->where == EXTI_NEEDED_FIRST ? 0 : n->count,
                      (struct library){NULL, op->to}, err);
    }
    /* A file may name a library twice; one left over would be loaded all the same. */
    for (size_t i = 0; i < n->count; i++)
        if (n->item[i].text && strcmp(n->item[i].text, op->from) == 0) {
            n->item[i].text = op->to;
            found = true;
        }
    if (found)
        return 0;
    /* Replaced already: so that editing a file twice is editing it once. */
    if (op->to && find(n, op->to))
        return 0;
    return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "DT_NEEDED: there is no '%s' to %s",
                      op->from, op->to ? "replace" : "remove");
}

static bool is_asked_for(const struct exti_rewrite_opts *opts, const char *text)
{
    for (size_t i = 0; i < opts->needed_count; i++)
        if (opts->needed[i].to && strcmp(opts->needed[i].to, text) == 0)
            return true;
    return false;
}

/* $ORIGIN in the entries that stay. */
static int translate(struct elf_edit *e, struct needed *n, struct exti_error *err)
{
    for (size_t i = 0; i < n->count; i++) {
        struct library *item = &n->item[i];
        int rc;

        if (!item->text || is_asked_for(e->opts, item->text))
            continue;
        rc = exti__elf_translate(e, &item->text, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int add_version(struct elf_edit *e, struct elf_version_edit v, struct exti_error *err)
{
    if (e->version_count == e->version_cap) {
        size_t cap = e->version_cap ? e->version_cap * 2 : 8;
        struct elf_version_edit *p = exti__realloc_array(e->versions, cap, sizeof *p);

        if (!p)
            return exti__fail_nomem(err);
        e->versions = p;
        e->version_cap = cap;
    }
    e->versions[e->version_count++] = v;
    return 0;
}

struct follow {
    struct elf_edit *e;
    const struct needed *needed;
};

/* glibc asserts that each vn_file is the name of a loaded library: it follows its DT_NEEDED. */
static int follow_version(void *user, const struct elf_version_ref *ref, struct exti_error *err)
{
    struct follow *w = user;
    const char *file, *to = NULL;
    bool changed = false;
    int rc;

    if (ref->kind != ELF_VERSION_FILE)
        return 0;
    rc = exti__elf_str(w->e->f, ref->name, "DT_VERNEED file name", &file, err);
    if (rc)
        return rc;
    for (size_t i = 0; !to && i < w->needed->count; i++) {
        const struct library *item = &w->needed->item[i];

        if (!item->was || item->was == item->text || strcmp(item->was, file) != 0)
            continue;
        changed = true;
        to = item->text;
    }
    if (!changed || find(w->needed, file))
        return 0;
    if (!to)
        return exti__fail(err, EXTI_E_UNSUPPORTED, ref->name_at,
                          "DT_NEEDED '%s' cannot be removed: versions of its symbols are needed",
                          file);
    return add_version(w->e, (struct elf_version_edit){ref->name_at, ref->name, 0, to}, err);
}

/* Puts the texts into the entries there are, then into new ones; drops entries left over. */
static int store(struct elf_edit *e, const struct needed *n, struct exti_error *err)
{
    size_t next = 0, kept = 0;
    int rc = 0;

    for (size_t i = 0; !rc && i < e->tag_count; i++) {
        struct elf_tag t = e->tags[i];

        while (t.d.d_tag == DT_NEEDED && next < n->count && !n->item[next].text)
            next++;
        if (t.d.d_tag == DT_NEEDED && next == n->count)
            continue;
        if (t.d.d_tag == DT_NEEDED)
            rc = exti__elf_set_text(e, &t, n->item[next++].text, err);
        e->tags[kept++] = t;
    }
    if (!rc)
        e->tag_count = kept;
    for (; !rc && next < n->count; next++)
        if (n->item[next].text)
            rc = exti__elf_add_tag(e, DT_NEEDED, 0, n->item[next].text, err);
    return rc;
}

int exti__elf_edit_needed(struct elf_edit *e, struct exti_error *err)
{
    struct needed n = {0};
    struct follow follow = {e, &n};
    int rc = collect(e, &n, err);

    for (size_t i = 0; !rc && i < e->opts->needed_count; i++)
        rc = apply(&n, &e->opts->needed[i], err);
    if (!rc)
        rc = translate(e, &n, err);
    if (!rc)
        rc = exti__elf_versions(e->f, follow_version, &follow, err);
    if (!rc)
        rc = store(e, &n, err);
    exti__free(n.item);
    return rc;
}
