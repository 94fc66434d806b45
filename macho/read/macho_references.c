/* The names that dyld binds an image by, whichever kind of fixups the file has. */
#include "macho/read/macho_references.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/read/macho_bind.h"
#include "macho/read/macho_chained.h"
#include "macho/read/macho_symbols.h"

/* Names can overlap, so together they can be longer than the file.  In real files they hardly
 * are; in a hostile one, comparing them could take time quadratic in its size. */
#define NAMES_PER_BYTE 16u
#define NAMES_ANYWAY ((uint64_t)64 << 20)

uint64_t exti__macho_names_limit(const struct macho_file *f)
{
    return f->file.n * (uint64_t)NAMES_PER_BYTE + NAMES_ANYWAY;
}

struct item {
    struct macho_reference r;
    size_t order;
};

struct list {
    const struct macho_file *f;
    struct item *items;
    size_t count, cap;
    uint64_t names_left;
};

static int add_reference(struct list *l, const struct macho_reference *r, struct exti_error *err)
{
    const struct macho_reference *last = l->count ? &l->items[l->count - 1].r : NULL;
    size_t n;
    struct item *items;

    if (last && last->name == r->name && last->ordinal == r->ordinal &&
        last->weak_import == r->weak_import)
        return 0;
    if (r->ordinal > (int32_t)(l->f->dylib_count ? l->f->dylib_count : 1))
        return exti__fail(err, EXTI_E_FORMAT, l->f->file.base + r->at,
                          "%.100s is bound to library %d of %zu", r->name, r->ordinal,
                          l->f->dylib_count);
    n = strlen(r->name);
    if (n > l->names_left)
        return exti__fail(err, EXTI_E_FORMAT, l->f->file.base + r->at,
                          "the names of bound symbols add up to more than a valid file has");
    l->names_left -= n;
    items = exti__array_room(l->items, l->count, &l->cap, sizeof *items);
    if (!items)
        return exti__fail_nomem(err);
    l->items = items;
    l->items[l->count] = (struct item){.r = *r, .order = l->count};
    l->count++;
    return 0;
}

static int add_bind(void *user, const struct macho_bind *b, struct exti_error *err)
{
    struct macho_reference r = {.name = b->symbol,
                                .ordinal = b->ordinal,
                                .weak_import = b->flags & BIND_SYMBOL_FLAGS_WEAK_IMPORT,
                                .at = b->at};

    return b->is_override ? 0 : add_reference(user, &r, err);
}

static int add_imports(struct list *l, struct exti_error *err)
{
    struct macho_chained c;
    int rc = exti__macho_chained_open(l->f, &c, err);

    for (uint32_t i = 0; !rc && i < c.imports_count; i++) {
        struct macho_import im;

        rc = exti__macho_chained_import(&c, i, &im, err);
        if (!rc)
            rc = add_reference(
                l,
                &(struct macho_reference){
                    .name = im.name, .ordinal = im.ordinal, .weak_import = im.weak, .at = im.at},
                err);
    }
    return rc;
}

static int add_undefined(struct list *l, struct exti_error *err)
{
    size_t count = exti__macho_symbol_count(l->f);
    int rc = 0;

    for (size_t i = 0; !rc && i < count; i++) {
        struct macho_nlist n;

        rc = exti__macho_symbol(l->f, i, &n, err);
        if (!rc && exti__macho_is_undefined(&n))
            rc = add_reference(
                l,
                &(struct macho_reference){.name = n.name,
                                          .ordinal = exti__macho_nlist_ordinal(l->f, &n),
                                          .weak_import = n.desc & N_WEAK_REF,
                                          .at = n.at},
                err);
    }
    return rc;
}

static int collect_references(struct list *l, struct exti_error *err)
{
    static const enum macho_piece_kind streams[] = {MACHO_BIND, MACHO_WEAK_BIND, MACHO_LAZY_BIND};
    int rc = 0;

    if (l->f->pieces[MACHO_CHAINED_FIXUPS].s.n)
        return add_imports(l, err);
    if (!l->f->pieces[MACHO_BIND].present)
        return add_undefined(l, err);
    for (size_t i = 0; !rc && i < sizeof streams / sizeof *streams; i++)
        rc = exti__macho_binds(l->f, streams[i], add_bind, l, err);
    return rc;
}

static int by_reference(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;
    int d = a->r.name == b->r.name ? 0 : strcmp(a->r.name, b->r.name);

    if (!d)
        d = (a->r.ordinal > b->r.ordinal) - (a->r.ordinal < b->r.ordinal);
    if (!d)
        d = a->r.weak_import - b->r.weak_import;
    return d ? d : (a->order > b->order) - (a->order < b->order);
}

static int by_order(const void *pa, const void *pb)
{
    const struct item *a = pa, *b = pb;

    return (a->order > b->order) - (a->order < b->order);
}

/* Keeps the first reference of each name, library and weakness. */
static void drop_repeated(struct list *l)
{
    size_t kept = 0;

    qsort(l->items, l->count, sizeof *l->items, by_reference);
    for (size_t i = 0; i < l->count; i++) {
        const struct macho_reference *r = &l->items[i].r,
                                     *last = kept ? &l->items[kept - 1].r : NULL;

        if (!last || r->ordinal != last->ordinal || r->weak_import != last->weak_import ||
            strcmp(r->name, last->name) != 0)
            l->items[kept++] = l->items[i];
    }
    l->count = kept;
    qsort(l->items, l->count, sizeof *l->items, by_order);
}

int exti__macho_references(const struct macho_file *f,
                           int (*each)(void *user, const struct macho_reference *r,
                                       struct exti_error *err),
                           void *user, struct exti_error *err)
{
    struct list l = {.f = f, .names_left = exti__macho_names_limit(f)};
    int rc = collect_references(&l, err);

    if (!rc && l.count)
        drop_repeated(&l);
    for (size_t i = 0; !rc && i < l.count; i++)
        rc = each(user, &l.items[i].r, err);
    exti__free(l.items);
    return rc;
}
