/* The order of the needed libraries is the order in which loaders look up symbols. */
#include "elf/edit/elf_needed.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/edit/elf_origin.h"
#include "elf/edit/elf_tags.h"
#include "elf/read/elf_version.h"

/* The libraries in their new order.  They go back into the existing DT_NEEDED entries in that
 * order, so that no other entry changes its place. */
struct needed {
    struct library {
        const char *was;  /* NULL: added by the edit */
        const char *text; /* NULL: removed by the edit */
    } *item;
    size_t count, cap;
};

/* More than any linker's command line names.  Bounds the work on a hostile file. */
enum { MOST = 4096 };

static struct library *find_library(const struct needed *n, const char *text)
{
    for (size_t i = 0; i < n->count; i++)
        if (n->item[i].text && strcmp(n->item[i].text, text) == 0)
            return &n->item[i];
    return NULL;
}

static int insert_library(struct needed *n, size_t at, struct library item, struct exti_error *err)
{
    struct library *p = exti__array_room(n->item, n->count, &n->cap, sizeof *p);

    if (!p)
        return exti__fail_nomem(err);
    n->item = p;
    memmove(n->item + at + 1, n->item + at, (n->count - at) * sizeof *n->item);
    n->item[at] = item;
    n->count++;
    return 0;
}

static int list_libraries(const struct elf_edit *e, struct needed *n, struct exti_error *err)
{
    for (size_t i = 0; i < e->tag_count; i++) {
        struct library item;
        int rc;

        if (e->tags[i].d.d_tag != DT_NEEDED)
            continue;
        if (n->count == MOST)
            return exti__fail(err, EXTI_E_UNSUPPORTED, exti__elf_dyn_offset(e->f, i),
                              "DT_NEEDED: more than %d libraries", MOST);
        rc = exti__elf_string(e->f, e->tags[i].d.d_un.d_val, "DT_NEEDED", &item.was, err);
        item.text = item.was;
        if (!rc)
            rc = insert_library(n, n->count, item, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int apply_needed_edit(struct needed *n, const struct exti_needed *op, bool may_lack,
                             struct exti_error *err)
{
    bool found = false;

    if (!op->from) {
        if (find_library(n, op->to))
            return 0;
        return insert_library(n, op->where == EXTI_NEEDED_FIRST ? 0 : n->count,
                              (struct library){NULL, op->to}, err);
    }
    /* A file may name a library twice, and loaders would load it for either entry. */
    for (size_t i = 0; i < n->count; i++)
        if (n->item[i].text && strcmp(n->item[i].text, op->from) == 0) {
            n->item[i].text = op->to;
            found = true;
        }
    if (found || may_lack)
        return 0;
    /* The file has this edit already; making it again changes nothing. */
    if (op->to && find_library(n, op->to))
        return 0;
    return exti__fail(err, EXTI_E_ARG, EXTI_NO_OFFSET, "DT_NEEDED: there is no '%s' to %s",
                      op->from, op->to ? "replace" : "remove");
}

static bool is_put_by_edit(const struct exti_rewrite_opts *opts, const char *text)
{
    for (size_t i = 0; i < opts->needed_count; i++)
        if (opts->needed[i].to && strcmp(opts->needed[i].to, text) == 0)
            return true;
    return false;
}

/* Spells out $ORIGIN in the entries that no edit names. */
static int translate_libraries(struct elf_edit *e, struct needed *n, struct exti_error *err)
{
    for (size_t i = 0; i < n->count; i++) {
        struct library *item = &n->item[i];
        int rc;

        if (!item->text || is_put_by_edit(e->opts, item->text))
            continue;
        rc = exti__elf_translate(e, &item->text, err);
        if (rc)
            return rc;
    }
    return 0;
}

static int add_version_edit(struct elf_edit *e, struct elf_version_edit v, struct exti_error *err)
{
    struct elf_version_edit *p =
        exti__array_room(e->versions, e->version_count, &e->version_cap, sizeof *p);

    if (!p)
        return exti__fail_nomem(err);
    e->versions = p;
    e->versions[e->version_count++] = v;
    return 0;
}

struct version_follow {
    struct elf_edit *e;
    const struct needed *needed;
};

/* glibc asserts that each vn_file names a loaded library, so it changes with its DT_NEEDED. */
static int follow_version(void *user, const struct elf_version_ref *ref, struct exti_error *err)
{
    struct version_follow *w = user;
    const char *file, *to = NULL;
    bool changed = false;
    int rc;

    if (ref->kind != ELF_VERSION_FILE)
        return 0;
    rc = exti__elf_string(w->e->f, ref->name, "DT_VERNEED file name", &file, err);
    if (rc)
        return rc;
    for (size_t i = 0; !to && i < w->needed->count; i++) {
        const struct library *item = &w->needed->item[i];

        if (!item->was || item->was == item->text || strcmp(item->was, file) != 0)
            continue;
        changed = true;
        to = item->text;
    }
    if (!changed || find_library(w->needed, file))
        return 0;
    if (!to)
        return exti__fail(
            err, EXTI_E_UNSUPPORTED, ref->name_at,
            "DT_NEEDED: '%s' cannot be removed, because DT_VERNEED has versions of it", file);
    return add_version_edit(w->e, (struct elf_version_edit){ref->name_at, ref->name, 0, to}, err);
}

/* Puts the names into the existing entries, then into new ones; drops the entries left over. */
static int store_libraries(struct elf_edit *e, const struct needed *n, struct exti_error *err)
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
    struct version_follow follow = {e, &n};
    int rc = list_libraries(e, &n, err);

    for (size_t i = 0; !rc && i < e->opts->needed_count; i++)
        rc = apply_needed_edit(&n, &e->opts->needed[i], e->opts->flags & EXTI_RW_ALLOW_ABSENT, err);
    if (!rc)
        rc = translate_libraries(e, &n, err);
    if (!rc)
        rc = exti__elf_versions(e->f, follow_version, &follow, err);
    if (!rc)
        rc = store_libraries(e, &n, err);
    exti__free(n.item);
    return rc;
}
