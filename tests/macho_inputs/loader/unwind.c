/* The compact unwind information, from Apple's <mach-o/compact_unwind_encoding.h>.  Nothing here
 * can throw through it, so reading it checks that it still describes the right functions. */
#include "tests/macho_inputs/loader/load.h"

#include <string.h>

struct unwind {
    const struct macho *m;
    const struct starts *starts;
    uint64_t at;                     /* of the section in the file */
    uint64_t except_from, except_to; /* __gcc_except_tab, from the header */
    uint64_t personality;            /* the function to find */
    bool found;
};

static void must_be_function(const struct unwind *u, uint64_t at, const char *where)
{
    if (!is_function(u->starts, at))
        die("%s: unwind information, %s: 0x%llx is no function", u->m->path, where,
            (unsigned long long)at);
}

static void check_page(const struct unwind *u, uint64_t page, uint32_t first)
{
    const struct macho *m = u->m;
    uint32_t kind = get32(m, page);
    uint64_t entries = page + get16(m, page + 4);
    uint32_t count = get16(m, page + 6);

    if (kind != 2 && kind != 3)
        die("%s: a page of unwind information of kind %u", m->path, kind);
    for (uint32_t i = 0; i < count; i++) {
        if (kind == 2)
            must_be_function(u, get32(m, entries + 8 * (uint64_t)i), "regular page");
        else
            must_be_function(u, first + (get32(m, entries + 4 * (uint64_t)i) & 0xffffff),
                             "compressed page");
    }
}

static void is_personality(void *user, const struct fixup *f)
{
    struct unwind *u = user;

    /* C++'s personality, or that of another language, defined in the file. */
    if (f->at == u->personality &&
        (!f->is_bind || strcmp(f->import.symbol, "___gxx_personality_v0") == 0))
        u->found = true;
}

static void check_lsda(const struct unwind *u, uint64_t from, uint64_t to)
{
    for (; from < to; from += 8) {
        uint64_t lsda = get32(u->m, from + 4);

        must_be_function(u, get32(u->m, from), "exception table");
        if (lsda < u->except_from || lsda >= u->except_to)
            die("%s: the exception table 0x%llx is not in __gcc_except_tab", u->m->path,
                (unsigned long long)lsda);
    }
}

static void check_all(struct unwind *u)
{
    const struct macho *m = u->m;
    uint64_t personalities = u->at + get32(m, u->at + 12), index = u->at + get32(m, u->at + 20);
    uint32_t count = get32(m, u->at + 24);

    if (get32(m, u->at) != 1 || count < 2)
        die("%s: unwind information of version %u with %u entries", m->path, get32(m, u->at),
            count);
    for (uint32_t i = 0; i < get32(m, u->at + 16); i++) {
        u->personality = get32(m, personalities + 4 * (uint64_t)i);
        u->found = false;
        each_fixup(m, is_personality, u);
        if (!u->found)
            die("%s: no personality function is bound at 0x%llx", m->path,
                (unsigned long long)u->personality);
    }
    for (uint32_t i = 0; i + 1 < count; i++, index += 12) {
        must_be_function(u, get32(m, index), "index");
        check_page(u, u->at + get32(m, index + 4), get32(m, index));
        check_lsda(u, u->at + get32(m, index + 8), u->at + get32(m, index + 20));
    }
}

void check_unwind_info(const struct macho *m, const struct starts *s)
{
    struct unwind u = {.m = m, .starts = s};

    for (size_t i = 0; i < m->section_count; i++) {
        const struct section *x = &m->sections[i];

        if (strcmp(x->name, "__unwind_info") == 0)
            u.at = x->offset;
        if (strcmp(x->name, "__gcc_except_tab") == 0) {
            u.except_from = x->addr - m->start;
            u.except_to = u.except_from + x->size;
        }
    }
    if (u.at)
        check_all(&u);
}
