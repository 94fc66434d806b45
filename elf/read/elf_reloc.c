#include "elf/read/elf_reloc.h"

#include "base/error.h"

/* gABI "Relocation": r_info.  MIPS64 has fields of its own, in either byte order: a symbol, and
 * three types of which the last byte is the first to apply. */
static struct elf_reloc read_reloc(const struct elf_file *f, struct exti_cur *c)
{
    struct elf_reloc r;
    uint64_t info;

    exti__cur_skip(c, f->is64 ? 8 : 4);
    if (f->is64 && f->ehdr.e_machine == EM_MIPS) {
        r.symbol = exti__cur_u32(c);
        exti__cur_skip(c, 3);
        r.type = exti__cur_u8(c);
        return r;
    }
    info = f->is64 ? exti__cur_u64(c) : exti__cur_u32(c);
    r.symbol = f->is64 ? info >> 32 : info >> 8;
    r.type = (uint32_t)(f->is64 ? info : info & 0xff);
    return r;
}

/* Sets *more to false if `each` wants no more. */
static int read_table(const struct elf_file *f, int64_t tag, int64_t size_tag, bool rela,
                      bool (*each)(void *user, const struct elf_reloc *r), void *user, bool *more,
                      struct exti_error *err)
{
    const GElf_Dyn *at = exti__elf_tag(f, tag), *size = exti__elf_tag(f, size_tag);
    const size_t entry = (f->is64 ? 8 : 4) * (rela ? 3u : 2u);
    struct exti_cur c;
    struct exti_span s;
    int rc;

    if (!at || !size || !size->d_un.d_val || !*more)
        return 0;
    rc = exti__elf_bytes_at(f, at->d_un.d_ptr, size->d_un.d_val, "relocation table", &s, err);
    if (rc)
        return rc;
    c = exti__cur(s, f->big_endian);
    for (uint64_t i = 0; *more && i < s.n / entry; i++) {
        struct elf_reloc r = read_reloc(f, &c);

        if (rela)
            exti__cur_skip(&c, f->is64 ? 8 : 4);
        *more = each(user, &r);
    }
    return exti__cur_end(&c, "relocation table", err);
}

int exti__elf_each_reloc(const struct elf_file *f,
                         bool (*each)(void *user, const struct elf_reloc *r), void *user,
                         struct exti_error *err)
{
    const GElf_Dyn *d = exti__elf_tag(f, DT_PLTREL);
    bool more = true;
    int rc = read_table(f, DT_RELA, DT_RELASZ, true, each, user, &more, err);

    if (!rc)
        rc = read_table(f, DT_REL, DT_RELSZ, false, each, user, &more, err);
    if (!rc && d)
        rc =
            read_table(f, DT_JMPREL, DT_PLTRELSZ, d->d_un.d_val == DT_RELA, each, user, &more, err);
    return rc;
}

struct static_search {
    uint16_t machine;
    const char *found;
};

/* The psABIs' relocations that give an offset from the thread pointer. */
static bool match_static(void *user, const struct elf_reloc *r)
{
    static const struct {
        uint16_t machine;
        uint32_t type;
        const char *name;
    } types[] = {
        {EM_X86_64, 18, "R_X86_64_TPOFF64"},       {EM_X86_64, 23, "R_X86_64_TPOFF32"},
        {EM_386, 14, "R_386_TLS_TPOFF"},           {EM_386, 37, "R_386_TLS_TPOFF32"},
        {EM_AARCH64, 1030, "R_AARCH64_TLS_TPREL"}, {EM_ARM, 19, "R_ARM_TLS_TPOFF32"},
        {EM_RISCV, 10, "R_RISCV_TLS_TPREL32"},     {EM_RISCV, 11, "R_RISCV_TLS_TPREL64"},
        {EM_PPC64, 73, "R_PPC64_TPREL64"},         {EM_PPC, 73, "R_PPC_TPREL32"},
        {EM_S390, 56, "R_390_TLS_TPOFF"},          {EM_MIPS, 47, "R_MIPS_TLS_TPREL32"},
        {EM_MIPS, 48, "R_MIPS_TLS_TPREL64"},       {258, 10, "R_LARCH_TLS_TPREL32"},
        {258, 11, "R_LARCH_TLS_TPREL64"},
    };
    struct static_search *s = user;

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == r->type && types[i].machine == s->machine)
            s->found = types[i].name;
    return !s->found;
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
    struct static_search s = {f->ehdr.e_machine, NULL};
    int rc = may_have_tls(f) ? exti__elf_each_reloc(f, match_static, &s, err) : 0;

    if (!rc)
        *out = s.found;
    return rc;
}
