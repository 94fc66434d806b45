/* The dynamic symbol table.  No field gives its number of entries.  It follows from DT_HASH's chain
 * count, from the end of DT_GNU_HASH's last chain, or else from the highest symbol that a
 * relocation refers to. */
#include "elf/read/elf_symbols.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/mem.h"
#include "elf/read/elf_hash.h"
#include "elf/read/elf_reloc.h"

/* Raises the count to one past the symbol's index. */
static bool count_relocated(void *user, const struct elf_reloc *r)
{
    uint64_t *count = user;

    if (r->symbol + 1 > *count)
        *count = r->symbol + 1;
    return true;
}

/* When no hash table has a symbol, loaders reach symbols through relocations only.  A SHT_DYNSYM
 * section header may give a higher count, unless its section would run into the string table. */
static int count_unhashed(const struct elf_file *f, uint64_t *count, struct exti_error *err)
{
    const size_t entry = exti__elf_sym_size(f);
    int rc = exti__elf_each_reloc(f, count_relocated, count, err);

    if (rc)
        return rc;
    for (size_t i = 0; i < f->shnum; i++) {
        const GElf_Shdr *sh = &f->shdr[i];

        if (sh->sh_type != SHT_DYNSYM || sh->sh_addr != f->symtab.vaddr ||
            sh->sh_size > f->symtab.s.n)
            continue;
        if (f->strtab.vaddr > sh->sh_addr && f->strtab.vaddr - sh->sh_addr < sh->sh_size)
            continue;
        if (sh->sh_size / entry > *count)
            *count = sh->sh_size / entry;
    }
    return 0;
}

static int count_symbols(struct elf_file *f, uint64_t *out, struct exti_error *err)
{
    const GElf_Dyn *mips = exti__elf_tag(f, DT_MIPS_SYMTABNO);
    uint64_t count = 0;
    int rc = 0;

    if (f->gnu_hash.present) {
        rc = exti__elf_gnu_table(f, err);
        if (!rc && f->gnu.chain.n)
            count = f->gnu.first + f->gnu.chain.n / 4;
    }
    if (!rc && f->hash.present) {
        rc = exti__elf_sysv_table(f, err);
        if (!rc && f->sysv.chains > count)
            count = f->sysv.chains;
    }
    if (!rc && f->ehdr.e_machine == EM_MIPS && mips && mips->d_un.d_val > count)
        count = mips->d_un.d_val;
    if (!rc && !count)
        rc = count_unhashed(f, &count, err);
    if (!rc)
        *out = count ? count : 1;
    return rc;
}

int exti__elf_read_symbols(struct elf_file *f, struct exti_error *err)
{
    const GElf_Dyn *entry = exti__elf_tag(f, DT_SYMENT);
    const size_t size = exti__elf_sym_size(f);
    uint64_t count;
    Elf_Data *d;
    int rc;

    if (!f->symtab.present)
        return exti__fail(err, EXTI_E_FORMAT, f->phdr[f->dynamic_phdr].p_offset,
                          "PT_DYNAMIC: no DT_SYMTAB");
    if (entry && entry->d_un.d_val != size)
        return exti__fail(err, EXTI_E_FORMAT, f->phdr[f->dynamic_phdr].p_offset,
                          "PT_DYNAMIC: DT_SYMENT is %" PRIu64 ", not %zu", entry->d_un.d_val, size);
    rc = count_symbols(f, &count, err);
    if (!rc)
        rc = exti__span_table(f->symtab.s, 0, count, size, "DT_SYMTAB", &f->symtab.s, err);
    if (!rc && f->versym.present)
        rc = exti__span_table(f->versym.s, 0, count, 2, "DT_VERSYM", &f->versym.s, err);
    if (rc)
        return rc;
    d = exti__elf_decode(f, f->symtab.s, ELF_T_SYM);
    if (!d)
        return exti__elf_libelf_failed(err, "DT_SYMTAB");
    f->sym = exti__calloc((size_t)count, sizeof *f->sym);
    if (!f->sym)
        return exti__fail_nomem(err);
    for (f->sym_count = 0; f->sym_count < count; f->sym_count++)
        if (!gelf_getsym(d, (int)f->sym_count, &f->sym[f->sym_count]))
            return exti__elf_libelf_failed(err, "DT_SYMTAB");
    return 0;
}

uint16_t exti__elf_versym(const struct elf_file *f, size_t i)
{
    return f->versym.present ? (uint16_t)exti__elf_word_of(f, f->versym.s, i, 2) : 1;
}

uint64_t exti__elf_sym_offset(const struct elf_file *f, size_t i)
{
    return f->symtab.s.base + (uint64_t)i * exti__elf_sym_size(f);
}
