/* Opening a shared object: headers first, then the tables that PT_DYNAMIC points at. */
#include "elf/read/elf_open.h"

#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "base/mem.h"
#include "elf/read/elf_symbols.h"
#include "elf/read/elf_unread.h"

static int check_ident(const struct elf_file *f, struct exti_error *err)
{
    struct exti_span ident;
    int rc = exti__span_sub(f->file, 0, EI_NIDENT, "ELF identification", &ident, err);

    if (rc)
        return rc;
    if (memcmp(ident.p, ELFMAG, SELFMAG) != 0)
        return exti__fail(err, EXTI_E_FORMAT, 0,
                          "not an ELF file: its first bytes are not 7f 'ELF'");
    if (ident.p[EI_CLASS] != ELFCLASS32 && ident.p[EI_CLASS] != ELFCLASS64)
        return exti__fail(err, EXTI_E_FORMAT, EI_CLASS,
                          "ELF header: class %d is neither 32 nor 64 bit", ident.p[EI_CLASS]);
    if (ident.p[EI_DATA] != ELFDATA2LSB && ident.p[EI_DATA] != ELFDATA2MSB)
        return exti__fail(err, EXTI_E_FORMAT, EI_DATA, "ELF header: unknown byte order %d",
                          ident.p[EI_DATA]);
    if (ident.p[EI_VERSION] != EV_CURRENT)
        return exti__fail(err, EXTI_E_FORMAT, EI_VERSION, "ELF header: unknown version %d",
                          ident.p[EI_VERSION]);
    return 0;
}

static int check_type(const struct elf_file *f, bool program, struct exti_error *err)
{
    static const char *const kinds[] = {"an ELF file of no type", "a relocatable object",
                                        "a fixed-address program", "a shared object",
                                        "a core dump"};
    struct exti_cur c = exti__cur(f->file, f->big_endian);
    uint16_t type;
    int rc;

    exti__cur_skip(&c, EI_NIDENT);
    type = exti__cur_u16(&c);
    rc = exti__cur_end(&c, "ELF header", err);
    if (rc)
        return rc;
    if (type == ET_DYN || (program && type == ET_EXEC))
        return 0;
    return exti__fail(
        err, EXTI_E_UNSUPPORTED, EI_NIDENT, "%s (e_type %u), not a shared object",
        type < sizeof kinds / sizeof *kinds ? kinds[type] : "an ELF file of an unknown type", type);
}

/* Checks the header fields that libelf relies on.  Sets *sections, except when there are no section
 * headers or they lie outside the file: loaders do not need them. */
static int check_header_tables(const struct elf_file *f, struct exti_span *sections,
                               struct exti_error *err)
{
    const size_t word = f->is64 ? 8 : 4;
    struct exti_cur c = exti__cur(f->file, f->big_endian);
    uint64_t phoff, shoff, shnum;
    uint16_t phentsize, phnum, shentsize;
    struct exti_span s;
    int rc;

    exti__cur_skip(&c, EI_NIDENT + 8 + word);
    phoff = f->is64 ? exti__cur_u64(&c) : exti__cur_u32(&c);
    shoff = f->is64 ? exti__cur_u64(&c) : exti__cur_u32(&c);
    exti__cur_skip(&c, 6);
    phentsize = exti__cur_u16(&c);
    phnum = exti__cur_u16(&c);
    shentsize = exti__cur_u16(&c);
    shnum = exti__cur_u16(&c);
    exti__cur_skip(&c, 2);
    rc = exti__cur_end(&c, "ELF header", err);
    if (rc)
        return rc;
    if (phnum == PN_XNUM)
        return exti__fail(err, EXTI_E_UNSUPPORTED, c.at - 8,
                          "program header table: extended numbering, which no loader supports");
    if (!phnum || !phoff)
        return exti__fail(err, EXTI_E_UNSUPPORTED, c.at - 8,
                          "no program headers: a loader would map nothing");
    if (phentsize != exti__elf_phdr_size(f))
        return exti__fail(err, EXTI_E_FORMAT, c.at - 10, "ELF header: e_phentsize is %u, not %zu",
                          phentsize, exti__elf_phdr_size(f));
    rc = exti__span_table(f->file, phoff, phnum, phentsize, "program header table", &s, err);
    if (rc)
        return rc;
    if (!shoff || shentsize != exti__elf_shdr_size(f) || shoff >= f->file.n)
        return 0;
    if (!shnum) {
        /* gABI "Section Header": from 65280 sections on, sh_size of entry 0 has their number. */
        if (exti__span_sub(f->file, shoff, shentsize, "", &s, NULL))
            return 0;
        c = exti__cur(s, f->big_endian);
        exti__cur_skip(&c, f->is64 ? 32 : 20);
        shnum = f->is64 ? exti__cur_u64(&c) : exti__cur_u32(&c);
    }
    if (!shnum || exti__span_table(f->file, shoff, shnum, shentsize, "", &s, NULL))
        return 0;
    *sections = s;
    return 0;
}

static int read_phdrs(struct elf_file *f, struct exti_error *err)
{
    f->phnum = f->ehdr.e_phnum;
    f->phdr = exti__calloc(f->phnum, sizeof *f->phdr);
    if (!f->phdr)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < f->phnum; i++)
        if (!gelf_getphdr(f->elf, (int)i, &f->phdr[i]))
            return exti__elf_libelf_failed(err, "program header table");
    return 0;
}

static int read_shdrs(struct elf_file *f, struct exti_span s, struct exti_error *err)
{
    Elf_Data *d;

    if (!s.n)
        return 0;
    d = exti__elf_decode(f, s, ELF_T_SHDR);
    if (!d)
        return exti__elf_libelf_failed(err, "section header table");
    f->shnum = s.n / exti__elf_shdr_size(f);
    f->shdr = exti__calloc(f->shnum, sizeof *f->shdr);
    if (!f->shdr)
        return exti__fail_nomem(err);
    for (size_t i = 0; i < f->shnum; i++) {
        if (f->is64) {
            f->shdr[i] = ((const Elf64_Shdr *)d->d_buf)[i];
        } else {
            const Elf32_Shdr *sh = (const Elf32_Shdr *)d->d_buf + i;

            f->shdr[i] = (GElf_Shdr){sh->sh_name,      sh->sh_type,   sh->sh_flags, sh->sh_addr,
                                     sh->sh_offset,    sh->sh_size,   sh->sh_link,  sh->sh_info,
                                     sh->sh_addralign, sh->sh_entsize};
        }
    }
    return 0;
}

static uint64_t phdr_offset(const struct elf_file *f, size_t i)
{
    return f->ehdr.e_phoff + i * exti__elf_phdr_size(f);
}

/* glibc and musl refuse a PT_LOAD that breaks these rules.  The previous one ends at `end`. */
static int check_load(const struct elf_file *f, size_t i, uint64_t end, struct exti_error *err)
{
    const GElf_Phdr *ph = &f->phdr[i];
    const uint64_t limit = f->is64 ? UINT64_MAX : UINT32_MAX;
    const uint64_t at = phdr_offset(f, i);
    struct exti_span s;
    uint64_t to;

    if (ph->p_filesz > ph->p_memsz)
        return exti__fail(err, EXTI_E_FORMAT, at,
                          "PT_LOAD: p_filesz 0x%" PRIx64 " exceeds p_memsz 0x%" PRIx64,
                          ph->p_filesz, ph->p_memsz);
    if (!exti__add(ph->p_vaddr, ph->p_memsz, &to) || to > limit)
        return exti__fail(err, EXTI_E_FORMAT, at, "PT_LOAD: ends past the address space");
    if (ph->p_align > 1 &&
        (!exti__is_power_of_2(ph->p_align) || (ph->p_vaddr - ph->p_offset) & (ph->p_align - 1)))
        return exti__fail(err, EXTI_E_FORMAT, at,
                          "PT_LOAD: address 0x%" PRIx64 " and offset 0x%" PRIx64
                          " differ modulo p_align 0x%" PRIx64,
                          ph->p_vaddr, ph->p_offset, ph->p_align);
    if (ph->p_vaddr < end)
        return exti__fail(err, EXTI_E_UNSUPPORTED, at,
                          "PT_LOAD: starts at 0x%" PRIx64
                          ", before the previous one ends at 0x%" PRIx64
                          "; loaders need ascending order",
                          ph->p_vaddr, end);
    return exti__span_sub(f->file, ph->p_offset, ph->p_filesz, "PT_LOAD", &s, err);
}

static int check_phdrs(struct elf_file *f, struct exti_error *err)
{
    bool dynamic = false;
    uint64_t end = 0;
    int rc;

    for (size_t i = 0; i < f->phnum; i++) {
        const GElf_Phdr *ph = &f->phdr[i];

        if (ph->p_type == PT_LOAD) {
            rc = check_load(f, i, end, err);
            if (rc)
                return rc;
            end = ph->p_vaddr + ph->p_memsz;
        } else if (ph->p_type == PT_DYNAMIC) {
            if (dynamic)
                return exti__fail(err, EXTI_E_FORMAT, phdr_offset(f, i),
                                  "program header table: a second PT_DYNAMIC");
            dynamic = true;
            f->dynamic_phdr = i;
        }
    }
    if (!dynamic)
        return exti__fail(err, EXTI_E_UNSUPPORTED, f->ehdr.e_phoff,
                          "no PT_DYNAMIC: not a dynamic shared object");
    if (!end)
        return exti__fail(err, EXTI_E_FORMAT, f->ehdr.e_phoff,
                          "no PT_LOAD: a loader would map nothing");
    return 0;
}

/* objcopy --only-keep-debug and eu-strip -f make separate debug files, whose .dynamic is empty. */
static bool is_debug_only(const struct elf_file *f)
{
    const GElf_Phdr *ph = &f->phdr[f->dynamic_phdr];

    if (!ph->p_filesz && ph->p_memsz)
        return true;
    for (size_t i = 0; i < f->shnum; i++)
        if (f->shdr[i].sh_type == SHT_NOBITS && f->shdr[i].sh_addr == ph->p_vaddr &&
            f->shdr[i].sh_size == ph->p_memsz && f->shdr[i].sh_size)
            return true;
    return false;
}

static int read_dynamic(struct elf_file *f, struct exti_error *err)
{
    const GElf_Phdr *ph = &f->phdr[f->dynamic_phdr];
    struct exti_span s;
    Elf_Data *d;
    int rc;

    f->dyn_slots = (size_t)(ph->p_filesz / exti__elf_dyn_size(f));
    if (!f->dyn_slots)
        return exti__fail(err, EXTI_E_FORMAT, phdr_offset(f, f->dynamic_phdr),
                          "PT_DYNAMIC: too small for an entry");
    rc = exti__elf_bytes_at(f, ph->p_vaddr, f->dyn_slots * exti__elf_dyn_size(f), "PT_DYNAMIC", &s,
                            err);
    if (rc)
        return rc;
    if (s.base != ph->p_offset)
        return exti__fail(err, EXTI_E_FORMAT, phdr_offset(f, f->dynamic_phdr),
                          "PT_DYNAMIC: p_offset 0x%" PRIx64
                          " is not the offset of its address, 0x%" PRIx64,
                          ph->p_offset, s.base);
    d = exti__elf_decode(f, s, ELF_T_DYN);
    f->dyn = exti__calloc(f->dyn_slots, sizeof *f->dyn);
    if (!f->dyn)
        return exti__fail_nomem(err);
    if (!d)
        return exti__elf_libelf_failed(err, "PT_DYNAMIC");
    f->dyn_count = f->dyn_slots;
    for (size_t i = 0; i < f->dyn_slots; i++) {
        if (!gelf_getdyn(d, (int)i, &f->dyn[i]))
            return exti__elf_libelf_failed(err, "PT_DYNAMIC");
        if (f->dyn[i].d_tag == DT_NULL && f->dyn_count == f->dyn_slots)
            f->dyn_count = i;
    }
    return 0;
}

/* Finds the table that `tag` points at; its size is not known yet. */
static int locate_part(const struct elf_file *f, int64_t tag, const char *what,
                       struct elf_part *out, struct exti_error *err)
{
    const GElf_Dyn *d = exti__elf_tag(f, tag);

    *out = (struct elf_part){0};
    if (!d)
        return 0;
    out->present = true;
    out->vaddr = d->d_un.d_ptr;
    return exti__elf_bytes_from(f, out->vaddr, what, &out->s, err);
}

static int read_strtab(struct elf_file *f, struct exti_error *err)
{
    const GElf_Dyn *size = exti__elf_tag(f, DT_STRSZ);
    int rc = locate_part(f, DT_STRTAB, "DT_STRTAB", &f->strtab, err);

    if (rc)
        return rc;
    if (!f->strtab.present || !size)
        return exti__fail(err, EXTI_E_FORMAT, f->phdr[f->dynamic_phdr].p_offset,
                          "PT_DYNAMIC: no %s", f->strtab.present ? "DT_STRSZ" : "DT_STRTAB");
    rc = exti__span_sub(f->strtab.s, 0, size->d_un.d_val, "DT_STRTAB", &f->strtab.s, err);
    if (rc)
        return rc;
    if (!f->strtab.s.n || f->strtab.s.p[f->strtab.s.n - 1])
        return exti__fail(err, EXTI_E_FORMAT, f->strtab.s.base,
                          "DT_STRTAB: its last string is not terminated");
    return 0;
}

static int read_parts(struct elf_file *f, struct exti_error *err)
{
    int rc = read_strtab(f, err);

    if (!rc)
        rc = locate_part(f, DT_SYMTAB, "DT_SYMTAB", &f->symtab, err);
    if (!rc)
        rc = locate_part(f, DT_HASH, "DT_HASH", &f->hash, err);
    if (!rc)
        rc = locate_part(f, DT_GNU_HASH, "DT_GNU_HASH", &f->gnu_hash, err);
    if (!rc)
        rc = locate_part(f, DT_VERSYM, "DT_VERSYM", &f->versym, err);
    if (!rc)
        rc = locate_part(f, DT_VERDEF, "DT_VERDEF", &f->verdef, err);
    if (!rc)
        rc = locate_part(f, DT_VERNEED, "DT_VERNEED", &f->verneed, err);
    if (rc)
        return rc;
    f->hash_word =
        f->is64 && (f->ehdr.e_machine == EM_S390 || f->ehdr.e_machine == EM_ALPHA) ? 8 : 4;
    return exti__elf_read_symbols(f, err);
}

static int read_elf_file(struct elf_file *f, bool program, struct exti_error *err)
{
    struct exti_span sections = {0};
    int rc = check_type(f, program, err);

    if (!rc)
        rc = check_header_tables(f, &sections, err);
    if (rc)
        return rc;
    if (elf_version(EV_CURRENT) == EV_NONE)
        return exti__elf_libelf_failed(err, "this libelf is too old");
    /* elf_memory's parameter is not const, but libelf never writes to the bytes. */
    f->elf = elf_memory((char *)(uintptr_t)f->file.p, f->file.n);
    if (!f->elf || !gelf_getehdr(f->elf, &f->ehdr))
        return exti__elf_libelf_failed(err, "ELF header");
    rc = read_phdrs(f, err);
    if (!rc)
        rc = read_shdrs(f, sections, err);
    if (!rc)
        rc = check_phdrs(f, err);
    if (rc)
        return rc;
    if (is_debug_only(f))
        return exti__fail(err, EXTI_E_UNSUPPORTED, f->ehdr.e_phoff,
                          "PT_DYNAMIC: empty, as in a separate debug file; use the library itself");
    rc = read_dynamic(f, err);
    return rc ? rc : read_parts(f, err);
}

static int open_as(struct exti_span file, bool program, struct elf_file *f, struct exti_error *err)
{
    int rc;

    *f = (struct elf_file){.file = file};
    rc = check_ident(f, err);
    if (rc)
        return rc;
    exti__elf_find_unread(file, &f->unread);
    f->is64 = file.p[EI_CLASS] == ELFCLASS64;
    f->big_endian = file.p[EI_DATA] == ELFDATA2MSB;
    rc = read_elf_file(f, program, err);
    if (rc)
        exti__elf_close(f);
    return rc;
}

int exti__elf_open(struct exti_span file, struct elf_file *f, struct exti_error *err)
{
    return open_as(file, false, f, err);
}

int exti__elf_open_program(struct exti_span file, struct elf_file *f, struct exti_error *err)
{
    return open_as(file, true, f, err);
}

void exti__elf_close(struct elf_file *f)
{
    exti__free(f->phdr);
    exti__free(f->shdr);
    exti__free(f->dyn);
    exti__free(f->sym);
    if (f->elf)
        elf_end(f->elf);
    *f = (struct elf_file){0};
}
