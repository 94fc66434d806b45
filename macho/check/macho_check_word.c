/* Numbers in the original's segments that hold addresses and so move with a page shift: pointers
 * that dyld rebases, unwind tables, offsets of initialisers. */
#include "macho/check/macho_check_word.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "macho/check/macho_check_bind.h"
#include "macho/check/macho_check_chain.h"
#include "macho/read/macho_segments.h"
#include "macho/read/macho_withheld.h"
#include "macho/read/macho_word.h"

#define UNWIND_HEADER_SIZE 28u
#define INDEX_ENTRY_SIZE 12u
#define UNWIND_REGULAR 2u

static int add_word(struct macho_words *list, uint64_t at, uint8_t size, struct exti_error *err)
{
    struct macho_word *v = exti__array_room(list->v, list->n, &list->cap, sizeof *v);

    if (!v)
        return exti__fail_nomem(err);
    list->v = v;
    list->v[list->n++] = (struct macho_word){at, size};
    return 0;
}

static int add_array(struct macho_words *out, struct exti_span s, uint64_t at, uint64_t count,
                     uint64_t step, struct exti_error *err)
{
    int rc = 0;

    for (uint64_t i = 0; !rc && i < count && at <= s.n && s.n - at >= 4; i++, at += step)
        rc = add_word(out, s.base + at, 4, err);
    return rc;
}

/* ---- __unwind_info (mach-o/compact_unwind_encoding.h) ---------------------------------------- */

static uint32_t word(struct exti_span s, uint64_t at)
{
    return at <= s.n && s.n - at >= 4 ? exti__macho_u32(s.p + at) : 0;
}

/* Entries of a regular page hold offsets from the image's start; those of a compressed page
 * count from its first function. */
static int add_page(struct macho_words *out, struct exti_span s, uint64_t page,
                    struct exti_error *err)
{
    const uint32_t place = word(s, page + 4);

    if (!page || word(s, page) != UNWIND_REGULAR)
        return 0;
    return add_array(out, s, page + (place & 0xffff), place >> 16, 8, err);
}

static int add_unwind(struct macho_words *out, struct exti_span s, struct exti_error *err)
{
    const uint64_t index = word(s, 20), count = word(s, 24);
    int rc = add_array(out, s, word(s, 12), word(s, 16), 4, err);

    if (s.n < UNWIND_HEADER_SIZE || word(s, 0) != 1)
        return rc;
    for (uint64_t i = 0; !rc && i < count && index + i * INDEX_ENTRY_SIZE < s.n; i++) {
        const uint64_t at = index + i * INDEX_ENTRY_SIZE;

        rc = add_array(out, s, at, 1, 4, err);
        if (!rc)
            rc = add_page(out, s, word(s, at + 4), err);
    }
    /* The LSDA array extends from the first index entry's LSDA offset to the last one's. */
    if (!rc && count) {
        const uint64_t first = word(s, index + 8),
                       end = word(s, index + (count - 1) * INDEX_ENTRY_SIZE + 8);

        rc = add_array(out, s, first, end > first ? (end - first) / 4 : 0, 4, err);
    }
    return rc;
}

static int add_section(struct macho_check *c, const struct macho_section *x,
                       struct macho_words *out, struct exti_error *err)
{
    const bool is_unwind =
        strcmp(x->segment, "__TEXT") == 0 && strcmp(x->name, "__unwind_info") == 0;
    struct exti_span s;

    if (!is_unwind && exti__macho_section_type(x->flags) != S_INIT_FUNC_OFFSETS)
        return 0;
    if (exti__span_sub(c->before.file, x->offset, x->size, "", &s, NULL))
        return 0;
    s.base = x->offset;
    return is_unwind ? add_unwind(out, s, err) : add_array(out, s, 0, s.n / 4, 4, err);
}

/* ---- rebases --------------------------------------------------------------------------------- */

static int add_rebases(struct macho_check *c, struct macho_words *out, struct exti_error *err)
{
    const struct macho_file *b = &c->before;
    struct macho_slots list = {NULL, 0, 0};
    int rc = exti__macho_slots(c, b, MACHO_STREAM_REBASE, &list, err);

    for (size_t i = 0; !rc && i < list.n; i++) {
        struct exti_span s;

        if (!exti__macho_at(b, b->text->vmaddr + list.v[i].at, 8, "", &s, NULL))
            rc = add_word(out, (uint64_t)(s.p - b->file.p), 8, err);
    }
    exti__macho_slots_free(&list);
    return rc;
}

static int add_rebased(void *user, uint64_t at, struct exti_error *err)
{
    return add_word(user, at, 8, err);
}

static int add_chains(struct macho_check *c, struct macho_words *out, struct exti_error *err)
{
    struct macho_chain_table t;
    bool ok;
    int rc;

    if (!c->before.pieces[MACHO_CHAINED_FIXUPS].s.n)
        return 0;
    rc = exti__macho_chain_open(c, &c->before, &t, &ok, err);
    if (rc)
        return rc;
    if (ok)
        rc = exti__macho_chain_walk(c, &c->before, &t, add_rebased, out, err);
    exti__macho_chain_close(&t);
    return rc;
}

int exti__macho_words(struct macho_check *c, struct macho_words *out, struct exti_error *err)
{
    int rc = add_rebases(c, out, err);

    if (!rc)
        rc = add_chains(c, out, err);
    for (size_t i = 0; !rc && i < c->before.section_count; i++)
        rc = add_section(c, &c->before.sections[i], out, err);
    return rc;
}
