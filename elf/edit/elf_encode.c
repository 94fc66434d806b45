#include "elf/edit/elf_encode.h"

#include "base/buf.h"

void exti__elf_put_half(const struct elf_file *f, uint8_t *p, uint16_t v)
{
    exti__put_u16(p, v, f->big_endian);
}

void exti__elf_put_word(const struct elf_file *f, uint8_t *p, uint32_t v)
{
    exti__put_u32(p, v, f->big_endian);
}

void exti__elf_put_addr(const struct elf_file *f, uint8_t *p, uint64_t v)
{
    if (f->is64)
        exti__put_u64(p, v, f->big_endian);
    else
        exti__put_u32(p, (uint32_t)v, f->big_endian);
}

/* Writes `n` address-sized fields in a row. */
static void put_addrs(const struct elf_file *f, uint8_t *p, const uint64_t *v, size_t n)
{
    const size_t word = f->is64 ? 8 : 4;

    for (size_t i = 0; i < n; i++)
        exti__elf_put_addr(f, p + i * word, v[i]);
}

void exti__elf_put_dyn(const struct elf_file *f, uint8_t *p, const GElf_Dyn *d)
{
    const uint64_t v[] = {(uint64_t)d->d_tag, d->d_un.d_val};

    put_addrs(f, p, v, 2);
}

void exti__elf_put_phdr(const struct elf_file *f, uint8_t *p, const GElf_Phdr *ph)
{
    const uint64_t v[] = {ph->p_offset, ph->p_vaddr, ph->p_paddr,
                          ph->p_filesz, ph->p_memsz, ph->p_align};

    exti__elf_put_word(f, p, ph->p_type);
    if (f->is64) {
        exti__elf_put_word(f, p + 4, ph->p_flags);
        put_addrs(f, p + 8, v, 6);
    } else {
        put_addrs(f, p + 4, v, 5);
        exti__elf_put_word(f, p + 24, ph->p_flags);
        put_addrs(f, p + 28, v + 5, 1);
    }
}

void exti__elf_put_shdr(const struct elf_file *f, uint8_t *p, const GElf_Shdr *sh)
{
    const size_t word = f->is64 ? 8 : 4;
    const uint64_t head[] = {sh->sh_flags, sh->sh_addr, sh->sh_offset, sh->sh_size};
    const uint64_t tail[] = {sh->sh_addralign, sh->sh_entsize};

    exti__elf_put_word(f, p, sh->sh_name);
    exti__elf_put_word(f, p + 4, sh->sh_type);
    put_addrs(f, p + 8, head, 4);
    p += 8 + 4 * word;
    exti__elf_put_word(f, p, sh->sh_link);
    exti__elf_put_word(f, p + 4, sh->sh_info);
    put_addrs(f, p + 8, tail, 2);
}
