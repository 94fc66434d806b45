/* Look-ups in an opened file: addresses, dynamic tags, strings, table words, record sizes. */
#include "elf/read/elf_file.h"

#include <inttypes.h>

#include "base/bytes.h"
#include "base/error.h"
#include "elf/read/elf_withheld.h"

static const GElf_Phdr *load_at(const struct elf_file *f, uint64_t vaddr)
{
    for (size_t i = 0; i < f->phnum; i++)
        if (f->phdr[i].p_type == PT_LOAD && vaddr >= f->phdr[i].p_vaddr &&
            vaddr - f->phdr[i].p_vaddr < f->phdr[i].p_filesz)
            return &f->phdr[i];
    return NULL;
}

int exti__elf_bytes_from(const struct elf_file *f, uint64_t vaddr, const char *what,
                         struct exti_span *out, struct exti_error *err)
{
    const GElf_Phdr *ph = load_at(f, vaddr);
    uint64_t into, at, n;

    if (!ph)
        return exti__fail(err, EXTI_E_FORMAT, f->phdr[f->dynamic_phdr].p_offset,
                          "%s: address 0x%" PRIx64 " is in no PT_LOAD's file part", what, vaddr);
    into = vaddr - ph->p_vaddr;
    at = ph->p_offset + into;
    n = ph->p_filesz - into;
    for (size_t i = 0; i < f->unread.count; i++) {
        const struct exti_range *u = &f->unread.part[i];

        if (at >= u->at && at - u->at < u->n)
            return exti__fail(err, EXTI_E_FORMAT, at,
                              "%s: address 0x%" PRIx64 " is in code, data or relative relocations",
                              what, vaddr);
        if (at < u->at && n > u->at - at)
            n = u->at - at;
    }
    return exti__span_sub(f->file, at, n, what, out, err);
}

int exti__elf_bytes_at(const struct elf_file *f, uint64_t vaddr, uint64_t len, const char *what,
                       struct exti_span *out, struct exti_error *err)
{
    struct exti_span s;
    int rc = exti__elf_bytes_from(f, vaddr, what, &s, err);

    return rc ? rc : exti__span_sub(s, 0, len, what, out, err);
}

const GElf_Dyn *exti__elf_tag(const struct elf_file *f, int64_t tag)
{
    for (size_t i = f->dyn_count; i-- > 0;)
        if (f->dyn[i].d_tag == tag)
            return &f->dyn[i];
    return NULL;
}

int exti__elf_string(const struct elf_file *f, uint64_t off, const char *what, const char **out,
                     struct exti_error *err)
{
    struct exti_span s;
    /* Opening checked that the last byte is NUL, so every string ends in the table. */
    int rc = exti__span_sub(f->strtab.s, off, 1, what, &s, err);

    if (!rc)
        *out = (const char *)s.p;
    return rc;
}

bool exti__elf_tag_is_string(int64_t tag)
{
    switch (tag) {
    case DT_NEEDED:
    case DT_SONAME:
    case DT_RPATH:
    case DT_RUNPATH:
    case DT_AUXILIARY:
    case DT_FILTER:
    case DT_AUDIT:
    case DT_DEPAUDIT:
    case DT_CONFIG:
        return true;
    default:
        return false;
    }
}

bool exti__elf_tag_is_pointer(int64_t tag)
{
    switch (tag) {
    case DT_PLTGOT:
    case DT_HASH:
    case DT_STRTAB:
    case DT_SYMTAB:
    case DT_RELA:
    case DT_INIT:
    case EXTI_DT_INIT:
    case DT_FINI:
    case DT_REL:
    case DT_JMPREL:
    case DT_INIT_ARRAY:
    case EXTI_DT_INIT_ARRAY:
    case DT_FINI_ARRAY:
    case DT_PREINIT_ARRAY:
    case DT_SYMTAB_SHNDX:
    case DT_RELR:
    case DT_GNU_HASH:
    case DT_VERSYM:
    case DT_VERDEF:
    case DT_VERNEED:
        return true;
    default:
        return tag >= DT_ADDRRNGLO && tag <= DT_ADDRRNGHI;
    }
}

Elf_Data *exti__elf_decode(const struct elf_file *f, struct exti_span s, Elf_Type type)
{
    return elf_getdata_rawchunk(f->elf, (int64_t)s.base, s.n, type);
}

/* ELF_E_NOMEM of elfutils' libelfP.h.  <libelf.h> names no error, and the texts of elf_errmsg are
 * translated. */
#define LIBELF_NOMEM 8

int exti__elf_libelf_failed(struct exti_error *err, const char *what)
{
    const int code = elf_errno();
    const char *why = elf_errmsg(code);

    if (code == LIBELF_NOMEM)
        return exti__fail_nomem(err);
    return exti__fail(err, EXTI_E_FORMAT, EXTI_NO_OFFSET, "%s: libelf: %s", what,
                      why && code ? why : "no reason given");
}

uint64_t exti__elf_word_of(const struct elf_file *f, struct exti_span table, size_t i, size_t size)
{
    const uint8_t *p;

    if (i >= table.n / size)
        return 0;
    p = table.p + i * size;
    if (size == 8)
        return exti__bytes_u64(p, f->big_endian);
    return size == 4 ? exti__bytes_u32(p, f->big_endian) : exti__bytes_u16(p, f->big_endian);
}

uint32_t exti__elf_word(const struct elf_file *f, struct exti_span table, size_t i)
{
    return i < table.n / 4 ? exti__bytes_u32(table.p + 4 * i, f->big_endian) : 0;
}

size_t exti__elf_dyn_size(const struct elf_file *f)
{
    return f->is64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
}

size_t exti__elf_sym_size(const struct elf_file *f)
{
    return f->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
}

size_t exti__elf_phdr_size(const struct elf_file *f)
{
    return f->is64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
}

size_t exti__elf_shdr_size(const struct elf_file *f)
{
    return f->is64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
}

uint64_t exti__elf_dyn_offset(const struct elf_file *f, size_t i)
{
    return f->phdr[f->dynamic_phdr].p_offset + (uint64_t)i * exti__elf_dyn_size(f);
}

uint64_t exti__elf_page_size(const struct elf_file *f)
{
    switch (f->ehdr.e_machine) {
    case EM_386:
    case EM_X86_64:
    case EM_S390:
    case EM_RISCV:
        return 0x1000;
    default:
        return 0x10000;
    }
}

const char *exti__elf_section_name(const struct elf_file *f, const GElf_Shdr *sh)
{
    const size_t index = f->ehdr.e_shstrndx;
    struct exti_span names;
    const char *name;

    if (index >= f->shnum ||
        exti__span_sub(f->file, f->shdr[index].sh_offset, f->shdr[index].sh_size, "", &names,
                       NULL) ||
        exti__span_cstr(names, sh->sh_name, "", &name, NULL) || !*name)
        return "an unnamed section";
    return name;
}
