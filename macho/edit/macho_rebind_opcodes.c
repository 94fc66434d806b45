/* Rebinds LC_DYLD_INFO's opcode streams. */
#include "macho/edit/macho_rebind_opcodes.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/edit/macho_bind_encode.h"
#include "macho/edit/macho_targets.h"
#include "macho/read/macho_bind.h"
#include "macho/read/macho_rebase.h"
#include "macho/read/macho_segments.h"

struct stream {
    struct macho_bind *list;
    size_t count, cap;
    bool changed;
};

/* A slot that the copy's weak stream no longer binds. */
struct freed {
    uint64_t vmaddr;
    struct macho_bind bind; /* its new binding; the ordinal is a library's */
    const struct macho_bound *known;
    bool holds; /* it gets the right value without another binding */
};

struct streams {
    struct macho_rebind *r;
    struct stream eager, lazy, weak;
    struct freed *freed; /* by vmaddr */
    size_t freed_count;
};

static int append_binding(struct stream *s, const struct macho_bind *b, struct exti_error *err)
{
    struct macho_bind *list = exti__array_room(s->list, s->count, &s->cap, sizeof *list);

    if (!list)
        return exti__fail_nomem(err);
    s->list = list;
    s->list[s->count++] = *b;
    return 0;
}

static int add_bind(void *user, const struct macho_bind *b, struct exti_error *err)
{
    return append_binding(user, b, err);
}

static uint64_t slot_address(const struct streams *x, const struct macho_bind *b)
{
    return x->r->b->f->segments[b->segment].vmaddr + b->offset;
}

/* ---- the weak stream ------------------------------------------------------------------------ */

/* Whether a binding leaves the weak stream, and which library then binds its slot. */
static int leaves_weak_stream(const struct streams *x, const struct macho_bind *b, bool *out,
                              int32_t *library, struct exti_error *err)
{
    int rc = exti__macho_new_ordinal(x->r, b->symbol, BIND_SPECIAL_DYLIB_WEAK_LOOKUP, library, err);

    *out = !rc && *library != BIND_SPECIAL_DYLIB_WEAK_LOOKUP;
    return rc;
}

static int by_vmaddr(const void *pa, const void *pb)
{
    const struct freed *a = pa, *b = pb;

    return (a->vmaddr > b->vmaddr) - (a->vmaddr < b->vmaddr);
}

/* Removes from the weak stream the bindings that now go to one library. */
static int free_slots(struct streams *x, struct exti_error *err)
{
    size_t kept = 0;

    x->freed = exti__realloc_array(NULL, x->weak.count, sizeof *x->freed);
    if (!x->freed)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < x->weak.count; i++) {
        struct macho_bind b = x->weak.list[i];
        int32_t library;
        bool goes;
        int rc = leaves_weak_stream(x, &b, &goes, &library, err);

        if (rc)
            return rc;
        if (!goes) {
            x->r->weak_left |= !b.is_override;
            x->weak.list[kept++] = b;
        } else if (!b.is_override) {
            b.ordinal = library;
            b.flags = 0;
            x->freed[x->freed_count++] = (struct freed){.vmaddr = slot_address(x, &b),
                                                        .bind = b,
                                                        .known = exti__macho_bound(x->r, b.symbol)};
        }
    }
    x->weak.changed = kept < x->weak.count;
    x->weak.count = kept;
    if (x->freed_count)
        qsort(x->freed, x->freed_count, sizeof *x->freed, by_vmaddr);
    return 0;
}

static struct freed *freed_at(const struct streams *x, uint64_t at)
{
    struct freed key = {.vmaddr = at};

    return x->freed_count ? bsearch(&key, x->freed, x->freed_count, sizeof key, by_vmaddr) : NULL;
}

/* Linkers leave the address of the file's own definition definition in a rebased slot.  A slot
 * with another value needs a binding. */
static int match_rebase(void *user, uint32_t segment, uint64_t offset, uint8_t type,
                        struct exti_error *err)
{
    struct streams *x = user;
    const struct macho_file *f = x->r->b->f;
    uint64_t at = f->segments[segment].vmaddr + offset;
    struct freed *freed = freed_at(x, at);
    struct exti_span slot;
    struct exti_cur c;

    (void)type;
    (void)err;
    if (!freed || freed->bind.ordinal != BIND_SPECIAL_DYLIB_SELF ||
        exti__macho_at(f, at, 8, "slot", &slot, NULL))
        return 0;
    c = exti__cur(slot, false);
    freed->holds =
        exti__cur_u64(&c) == f->text->vmaddr + freed->known->address + (uint64_t)freed->bind.addend;
    return 0;
}

/* If another stream also binds a freed slot to the same name, that binding gets the slot's new
 * library. */
static void match_bindings(struct streams *x, struct stream *s)
{
    for (size_t i = 0; i < s->count; i++) {
        struct macho_bind *b = &s->list[i];
        struct freed *freed = freed_at(x, slot_address(x, b));

        if (!freed)
            continue;
        freed->holds =
            exti__macho_bound(x->r, b->symbol) == freed->known && b->addend == freed->bind.addend;
        if (!freed->holds || b->ordinal == freed->bind.ordinal)
            continue;
        b->ordinal = freed->bind.ordinal;
        s->changed = true;
    }
}

/* Every slot that left the weak stream needs a value from a rebase or another binding. */
static int fill_slots(struct streams *x, struct exti_error *err)
{
    int rc = exti__macho_rebases(x->r->b->f, match_rebase, x, err);

    if (rc)
        return rc;
    match_bindings(x, &x->eager);
    match_bindings(x, &x->lazy);
    for (size_t i = 0; !rc && i < x->freed_count; i++) {
        if (x->freed[i].holds)
            continue;
        rc = append_binding(&x->eager, &x->freed[i].bind, err);
        x->eager.changed = true;
    }
    return rc;
}

/* ---- eager and lazy streams ------------------------------------------------------------------ */

static int rebind_stream(struct streams *x, struct stream *s, struct exti_error *err)
{
    const char *symbol = NULL;
    int32_t was = 0, now = 0;

    for (size_t i = 0; i < s->count; i++) {
        struct macho_bind *b = &s->list[i];

        /* Streams usually bind one symbol in many slots in a row. */
        if (b->symbol != symbol || b->ordinal != was) {
            int rc = exti__macho_new_ordinal(x->r, b->symbol, b->ordinal, &now, err);

            if (rc)
                return rc;
            symbol = b->symbol;
            was = b->ordinal;
        }
        s->changed |= now != was;
        b->ordinal = now;
    }
    return 0;
}

/* Overwrites the ordinal of the opcode at `p`, with `n` bytes left, if the new ordinal takes the
 * same number of bytes. */
static bool set_in_place(uint8_t *p, size_t n, int32_t library)
{
    size_t size = 1;

    if ((*p & BIND_OPCODE_MASK) != BIND_OPCODE_SET_DYLIB_ORDINAL_ULEB) {
        if (library > 15)
            return false;
        *p = (uint8_t)(library > 0 ? BIND_OPCODE_SET_DYLIB_ORDINAL_IMM | (unsigned)library
                                   : BIND_OPCODE_SET_DYLIB_SPECIAL_IMM |
                                         ((unsigned)library & BIND_IMMEDIATE_MASK));
        return true;
    }
    while (size + 1 < n && p[size] & 0x80)
        size++;
    if (library < 0 || (size < 5 && library >> 7 * size))
        return false;
    for (size_t i = 1; i <= size; i++, library >>= 7)
        p[i] = (uint8_t)((library & 0x7f) | (i < size ? 0x80 : 0));
    return true;
}

/* Changes ordinals in the lazy stream in place, because stub helpers refer to its opcodes by
 * offset.  *done is false if an ordinal does not fit. */
static int edit_lazy_in_place(struct streams *x, bool *done, struct exti_error *err)
{
    const struct macho_file *f = x->r->b->f;
    struct exti_span s = f->pieces[MACHO_LAZY_BIND].s;
    struct exti_buf *out = exti__macho_piece_new(x->r->b, MACHO_LAZY_BIND, s.n);
    int rc = exti__buf_append(out, s.p, s.n, err);

    *done = true;
    for (size_t i = 0; !rc && *done && i < x->lazy.count; i++) {
        const struct macho_bind *b = &x->lazy.list[i], *last = i ? b - 1 : NULL;
        size_t at = (size_t)(b->at + f->file.base - s.base);

        if (last && last->at == b->at)
            *done = last->ordinal == b->ordinal;
        else
            *done = set_in_place(out->p + at, out->n - at, b->ordinal);
    }
    return rc;
}

/* Writes a stream anew, with space for one ordinal opcode per symbol. */
static int write_stream(struct streams *x, enum macho_piece_kind kind, const struct stream *s,
                        struct exti_error *err)
{
    size_t max = x->r->b->f->file.n + 0x10000;
    struct exti_buf *out = exti__macho_piece_new(x->r->b, kind, max);
    int rc;

    if (!s->count)
        return 0;
    rc = exti__macho_bind_encode(s->list, s->count, kind == MACHO_WEAK_BIND, out, err);
    if (!rc)
        rc = exti__buf_zeros(out, 1, err);
    return rc ? rc : exti__buf_align(out, 8, err);
}

/* Moves all lazy bindings to the eager stream, as the linker's -bind_at_load does.  Since macOS
 * 12 dyld binds them at load time anyway. */
static int bind_lazy_eagerly(struct streams *x, struct exti_error *err)
{
    int rc = 0;

    for (size_t i = 0; !rc && i < x->lazy.count; i++)
        rc = append_binding(&x->eager, &x->lazy.list[i], err);
    x->eager.changed = true;
    exti__macho_piece_new(x->r->b, MACHO_LAZY_BIND, 0);
    return rc;
}

static int write_streams(struct streams *x, struct exti_error *err)
{
    bool done = true;
    int rc = 0;

    if (x->lazy.changed)
        rc = edit_lazy_in_place(x, &done, err);
    if (!rc && !done)
        rc = bind_lazy_eagerly(x, err);
    if (!rc && x->eager.changed)
        rc = write_stream(x, MACHO_BIND, &x->eager, err);
    if (!rc && x->weak.changed)
        rc = write_stream(x, MACHO_WEAK_BIND, &x->weak, err);
    return rc;
}

int exti__macho_rebind_opcodes(struct macho_rebind *r, struct exti_error *err)
{
    struct streams x = {.r = r};
    const struct macho_file *f = r->b->f;
    int rc = exti__macho_binds(f, MACHO_BIND, add_bind, &x.eager, err);

    if (!rc)
        rc = exti__macho_binds(f, MACHO_LAZY_BIND, add_bind, &x.lazy, err);
    if (!rc)
        rc = exti__macho_binds(f, MACHO_WEAK_BIND, add_bind, &x.weak, err);
    if (!rc)
        rc = rebind_stream(&x, &x.eager, err);
    if (!rc)
        rc = rebind_stream(&x, &x.lazy, err);
    if (!rc)
        rc = free_slots(&x, err);
    if (!rc && x.freed_count)
        rc = fill_slots(&x, err);
    if (!rc)
        rc = write_streams(&x, err);
    exti__free(x.eager.list);
    exti__free(x.lazy.list);
    exti__free(x.weak.list);
    exti__free(x.freed);
    return rc;
}
