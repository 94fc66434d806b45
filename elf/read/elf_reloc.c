#include "elf/read/elf_reloc.h"

#include "base/bytes.h"
#include "base/checked.h"
#include "base/error.h"

static uint64_t read_word(const struct elf_file *f, const uint8_t *p)
{
    return f->is64 ? exti__bytes_u64(p, f->big_endian) : exti__bytes_u32(p, f->big_endian);
}

/* gABI "Relocation": r_info, which follows r_offset.  MIPS64 has fields of its own, in either byte
 * order: a symbol, and three types of which the last byte is the first to apply. */
static struct elf_reloc read_reloc(const struct elf_file *f, const uint8_t *entry)
{
    const uint8_t *p = entry + (f->is64 ? 8 : 4);
    struct elf_reloc r = {.place = read_word(f, entry)};
    const uint64_t info = read_word(f, p);

    if (f->is64 && f->ehdr.e_machine == EM_MIPS) {
        r.symbol = exti__bytes_u32(p, f->big_endian);
        r.type = p[7];
    } else {
        r.symbol = f->is64 ? info >> 32 : info >> 8;
        r.type = (uint32_t)(f->is64 ? info : info & 0xff);
    }
    return r;
}

/* How many entries at the start of a table of `size` bytes DT_RELACOUNT or DT_RELCOUNT calls
 * relative.  glibc and the BSDs apply these without a look at their types, and they may not have
 * been read (elf_unread.h). */
static uint64_t count_relative(const struct elf_file *f, int64_t tag, uint64_t size, size_t entry)
{
    const GElf_Dyn *d = exti__elf_tag(f, tag);

    return d && d->d_un.d_val <= size / entry ? d->d_un.d_val : 0;
}

/* The dynamic tags of one table; `count` is 0 if no tag counts its relative entries. */
struct reloc_tags {
    int64_t at, size, count;
    bool rela;
};

/* Sets *more to false if `each` wants no more. */
static int read_table(const struct elf_file *f, const struct reloc_tags *tags,
                      bool (*each)(void *user, const struct elf_reloc *r), void *user, bool *more,
                      struct exti_error *err)
{
    const GElf_Dyn *at = exti__elf_tag(f, tags->at), *size = exti__elf_tag(f, tags->size);
    const size_t word = f->is64 ? 8 : 4, entry = word * (tags->rela ? 3u : 2u);
    uint64_t skipped, from;
    struct exti_span s;
    int rc;

    if (!at || !size || !size->d_un.d_val || !*more)
        return 0;
    skipped = tags->count ? count_relative(f, tags->count, size->d_un.d_val, entry) * entry : 0;
    if (skipped == size->d_un.d_val)
        return 0;
    if (!exti__add(at->d_un.d_ptr, skipped, &from))
        return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET,
                          "relocation table: ends past the address space");
    rc = exti__elf_bytes_at(f, from, size->d_un.d_val - skipped, "relocation table", &s, err);
    if (rc)
        return rc;
    for (size_t i = 0; *more && i < s.n / entry; i++) {
        struct elf_reloc r = read_reloc(f, s.p + i * entry);

        r.plt = tags->at == DT_JMPREL;
        *more = each(user, &r);
    }
    return 0;
}

int exti__elf_each_reloc(const struct elf_file *f,
                         bool (*each)(void *user, const struct elf_reloc *r), void *user,
                         struct exti_error *err)
{
    const GElf_Dyn *d = exti__elf_tag(f, DT_PLTREL);
    const struct reloc_tags tables[] = {
        {DT_RELA, DT_RELASZ, DT_RELACOUNT, true},
        {DT_REL, DT_RELSZ, DT_RELCOUNT, false},
        {DT_JMPREL, DT_PLTRELSZ, 0, d && d->d_un.d_val == DT_RELA},
    };
    bool more = true;
    int rc = 0;

    for (size_t i = 0; i < (d ? 3 : 2) && !rc; i++)
        rc = read_table(f, &tables[i], each, user, &more, err);
    return rc;
}

/* The psABIs' relocations that give an offset from the thread pointer. */
static const struct static_types {
    uint16_t machine;
    struct {
        uint32_t type;
        const char *name; /* NULL past the last */
    } of[2];
} static_types[] = {
    {EM_X86_64, {{18, "R_X86_64_TPOFF64"}, {23, "R_X86_64_TPOFF32"}}},
    {EM_386, {{14, "R_386_TLS_TPOFF"}, {37, "R_386_TLS_TPOFF32"}}},
    {EM_AARCH64, {{1030, "R_AARCH64_TLS_TPREL"}}},
    {EM_ARM, {{19, "R_ARM_TLS_TPOFF32"}}},
    {EM_RISCV, {{10, "R_RISCV_TLS_TPREL32"}, {11, "R_RISCV_TLS_TPREL64"}}},
    {EM_PPC64, {{73, "R_PPC64_TPREL64"}}},
    {EM_PPC, {{73, "R_PPC_TPREL32"}}},
    {EM_S390, {{56, "R_390_TLS_TPOFF"}}},
    {EM_MIPS, {{47, "R_MIPS_TLS_TPREL32"}, {48, "R_MIPS_TLS_TPREL64"}}},
    {258, {{10, "R_LARCH_TLS_TPREL32"}, {11, "R_LARCH_TLS_TPREL64"}}},
};

struct static_search {
    const struct static_types *types;
    const char *found;
};

static bool match_static(void *user, const struct elf_reloc *r)
{
    struct static_search *s = user;

    for (size_t i = 0; i < 2; i++)
        if (s->types->of[i].type == r->type && s->types->of[i].name)
            s->found = s->types->of[i].name;
    return !s->found;
}

static const struct static_types *types_of(uint16_t machine)
{
    for (size_t i = 0; i < sizeof static_types / sizeof *static_types; i++)
        if (static_types[i].machine == machine)
            return &static_types[i];
    return NULL;
}

/* Whether some relocation can be of thread-local storage: most files have none, and then their
 * relocations need not be read. */
static bool may_have_tls(const struct elf_file *f)
{
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_TLS)
            return true;
    for (size_t i = 1; i < f->sym_count; i++)
        if (f->sym[i].st_shndx == SHN_UNDEF && GELF_ST_TYPE(f->sym[i].st_info) == STT_TLS)
            return true;
    return false;
}

int exti__elf_static_tls(const struct elf_file *f, const char **out, struct exti_error *err)
{
    struct static_search s = {types_of(f->ehdr.e_machine), NULL};
    int rc = s.types && may_have_tls(f) ? exti__elf_each_reloc(f, match_static, &s, err) : 0;

    if (!rc)
        *out = s.found;
    return rc;
}
