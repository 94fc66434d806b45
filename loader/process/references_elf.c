/* The references of what ld.so has loaded: its relocations that name symbols. */
#include <elf.h>
#include <link.h>

#include "loader/process/elf_relocations.h"
#include "loader/process/linkmap.h"

#define SYMBOL_BIND(info) ELF64_ST_BIND(info) /* the same for both classes */

static bool reference_kind(uint64_t type, enum exti_reference_kind *kind)
{
    if (type == RELOC_ABSOLUTE || type == RELOC_GLOB_DAT || type == RELOC_JUMP_SLOT)
        *kind = EXTI_REF_ADDRESS;
    else if (type == RELOC_TLS_MODULE)
        *kind = EXTI_REF_TLS_MODULE;
    else if (type == RELOC_TLS_OFFSET)
        *kind = EXTI_REF_TLS_OFFSET;
    else if (type == RELOC_TLS_DESCRIPTOR)
        *kind = EXTI_REF_TLS_DESCRIPTOR;
    else
        return false;
    return true;
}

/* Relocations that may name a symbol, one after the other. */
struct relocations {
    const uint8_t *next;
    size_t left, entry;
};

static struct relocations relocations_of(const struct exti_loaded *lib, int table)
{
    const bool addends = lib->reloc_addends[table];
    const size_t entry = addends ? sizeof(ElfW(Rela)) : sizeof(ElfW(Rel)),
                 all = lib->reloc_size[table] / entry,
                 relative = table ? 0 : lib->relative_count[addends],
                 passed = relative < all ? relative : all;

    if (!lib->relocs[table])
        return (struct relocations){.next = NULL};
    return (struct relocations){(const uint8_t *)lib->relocs[table] + passed * entry, all - passed,
                                entry};
}

/* NULL: that was all.  A Rel is the first two members of a Rela. */
static const ElfW(Rela) * next_relocation(struct relocations *t)
{
    const void *r = t->next;

    if (!t->left)
        return NULL;
    t->left--;
    t->next += t->entry;
    return r;
}

/* Whether an address in the slot leads to what is passed over. */
static bool is_passed(const struct exti_reference *ref, const struct exti_passed *passed)
{
    uintptr_t value;

    if (ref->kind != EXTI_REF_ADDRESS)
        return false;
    value = exti__slot_value(ref) - ref->addend;
    for (size_t i = 0; i < sizeof passed->to / sizeof *passed->to; i++)
        if (value >= passed->to[i].lo && value < passed->to[i].hi)
            return true;
    return false;
}

static int table_references(const struct exti_loaded *lib, int table, struct exti_passed *passed,
                            int (*each)(void *user, const struct exti_reference *ref), void *user)
{
    struct relocations t = relocations_of(lib, table);
    const ElfW(Sym) *symbols = lib->symbols;
    const ElfW(Rela) * r;
    int rc = 0;

    while (!rc && (r = next_relocation(&t))) {
        const ElfW(Sym) *s = &symbols[RELOC_SYMBOL(r->r_info)];
        struct exti_reference ref = {0};

        if (!RELOC_SYMBOL(r->r_info) || !reference_kind(RELOC_TYPE(r->r_info), &ref.kind))
            continue;
        ref.slot = (uintptr_t *)(lib->base + r->r_offset);
        ref.addend = lib->reloc_addends[table] ? (uintptr_t)r->r_addend : 0;
        if (passed && is_passed(&ref, passed)) {
            passed->count++;
            continue;
        }
        if (SYMBOL_BIND(s->st_info) == STB_LOCAL)
            continue;
        ref.name = lib->strings + s->st_name;
        ref.symbol = s;
        ref.weak = SYMBOL_BIND(s->st_info) == STB_WEAK;
        ref.defined_here = s->st_shndx != SHN_UNDEF;
        ref.unique = ref.defined_here && SYMBOL_BIND(s->st_info) == STB_GNU_UNIQUE;
        ref.in_data = RELOC_TYPE(r->r_info) == RELOC_ABSOLUTE;
        rc = each(user, &ref);
    }
    return rc;
}

int exti__loaded_references(const struct exti_loaded *lib, struct exti_passed *passed,
                            int (*each)(void *user, const struct exti_reference *ref), void *user,
                            struct exti_error *err)
{
    (void)err; /* ld.so has mapped all there is to read */
    if (!table_references(lib, 0, passed, each, user))
        table_references(lib, 1, passed, each, user);
    return 0;
}

bool exti__loaded_uses_static_tls(const struct exti_loaded *lib)
{
    const ElfW(Sym) *symbols = lib->symbols;
    const ElfW(Rela) * r;

    for (int table = 0; table < 2; table++) {
        struct relocations t = relocations_of(lib, table);

        while ((r = next_relocation(&t)))
            if (RELOC_TYPE(r->r_info) == RELOC_TLS_OFFSET &&
                (!RELOC_SYMBOL(r->r_info) ||
                 SYMBOL_BIND(symbols[RELOC_SYMBOL(r->r_info)].st_info) == STB_LOCAL))
                return true;
    }
    return false;
}
