/* A hand-made shared object of either class and byte order, with every structure that the reader
 * looks at in a known place.  Shares no code with the library. */
#ifndef TESTS_UNIT_ELF_TOY_H
#define TESTS_UNIT_ELF_TOY_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct elf_toy {
    bool wide, big;
    uint8_t b[8192];
    size_t n;
    size_t phdr, note, hash, gnu, sym, str, str_size, versym, verdef, verneed, dyn, shdr;
    size_t dyn_slots;
};

enum { TOY_DATA = 0x600, TOY_DATA_VADDR = 0x2600, TOY_SYMS = 5, TOY_PHDRS = 5 };

static inline void toy_put(struct elf_toy *t, size_t at, size_t width, uint64_t v)
{
    for (size_t i = 0; i < width; i++)
        t->b[at + i] = (uint8_t)(v >> 8 * (t->big ? width - 1 - i : i));
}

static inline uint64_t toy_get(const struct elf_toy *t, size_t at, size_t width)
{
    uint64_t v = 0;

    for (size_t i = 0; i < width; i++)
        v |= (uint64_t)t->b[at + i] << 8 * (t->big ? width - 1 - i : i);
    return v;
}

/* Appends a field. */
static inline void toy_add(struct elf_toy *t, size_t width, uint64_t v)
{
    toy_put(t, t->n, width, v);
    t->n += width;
}

static inline size_t toy_word(const struct elf_toy *t)
{
    return t->wide ? 8 : 4;
}

static inline void toy_align(struct elf_toy *t, size_t align)
{
    t->n = (t->n + align - 1) / align * align;
}

static inline void toy_phdr(struct elf_toy *t, uint32_t type, uint32_t flags, uint64_t offset,
                            uint64_t vaddr, uint64_t size, uint64_t align)
{
    toy_add(t, 4, type);
    if (t->wide)
        toy_add(t, 4, flags);
    toy_add(t, toy_word(t), offset);
    toy_add(t, toy_word(t), vaddr);
    toy_add(t, toy_word(t), vaddr);
    toy_add(t, toy_word(t), size);
    toy_add(t, toy_word(t), size);
    if (!t->wide)
        toy_add(t, 4, flags);
    toy_add(t, toy_word(t), align);
}

static inline void toy_sym(struct elf_toy *t, uint32_t name, int bind, int type, uint16_t shndx,
                           uint64_t value)
{
    uint8_t info = (uint8_t)ELF64_ST_INFO(bind, type);

    toy_add(t, 4, name);
    if (t->wide) {
        toy_add(t, 1, info);
        toy_add(t, 1, 0);
        toy_add(t, 2, shndx);
        toy_add(t, 8, value);
        toy_add(t, 8, 8);
    } else {
        toy_add(t, 4, value);
        toy_add(t, 4, 8);
        toy_add(t, 1, info);
        toy_add(t, 1, 0);
        toy_add(t, 2, shndx);
    }
}

static inline void toy_dyn(struct elf_toy *t, uint64_t tag, uint64_t value)
{
    toy_add(t, toy_word(t), tag);
    toy_add(t, toy_word(t), value);
    t->dyn_slots++;
}

static inline uint32_t toy_gnu_hash(const char *s)
{
    uint32_t h = 5381;

    while (*s)
        h = h * 33 + (uint8_t)*s++;
    return h;
}

/* Offsets of the strings below. */
enum {
    TOY_SONAME = 1,
    TOY_LIBC = 11,
    TOY_V1 = 21,
    TOY_IMPORT = 24,
    TOY_EXPORT = 31,
    TOY_UNIQUE = 38,
    TOY_PATH = 45,
    TOY_V2 = 57,
    TOY_STRINGS_END = 60
};
static const char toy_strings[TOY_STRINGS_END] =
    "\0libtoy.so\0libc.so.6\0V1\0import\0export\0unique\0$ORIGIN/lib\0V2";

static inline void toy_tables(struct elf_toy *t)
{
    const char *const hashed[] = {"export", "unique", "V2"};

    t->note = t->n;
    toy_add(t, 4, 4);
    toy_add(t, 4, 8);
    toy_add(t, 4, NT_GNU_BUILD_ID);
    memcpy(t->b + t->n, "GNU\0\x01\x23\x45\x67\x89\xab\xcd\xef", 12);
    t->n += 12;
    toy_align(t, 8);
    t->hash = t->n; /* one bucket: 4, 3, 2, 1 */
    toy_add(t, 4, 1);
    toy_add(t, 4, TOY_SYMS);
    toy_add(t, 4, 4);
    for (uint32_t i = 0; i < TOY_SYMS; i++)
        toy_add(t, 4, i ? i - 1 : 0);
    toy_align(t, 8);
    t->gnu = t->n;
    toy_add(t, 4, 1);
    toy_add(t, 4, 2);
    toy_add(t, 4, 1);
    toy_add(t, 4, 5);
    toy_add(t, toy_word(t), UINT64_MAX);
    toy_add(t, 4, 2);
    for (int i = 0; i < 3; i++)
        toy_add(t, 4, (toy_gnu_hash(hashed[i]) & ~1u) | (i == 2));
    toy_align(t, 8);
    t->sym = t->n;
    toy_sym(t, 0, 0, 0, 0, 0);
    toy_sym(t, TOY_IMPORT, STB_WEAK, STT_FUNC, SHN_UNDEF, 0);
    toy_sym(t, TOY_EXPORT, STB_GLOBAL, STT_FUNC, 1, 0x400);
    toy_sym(t, TOY_UNIQUE, STB_GNU_UNIQUE, STT_OBJECT, 1, 0x408);
    toy_sym(t, TOY_V2, STB_GLOBAL, STT_OBJECT, SHN_ABS, 0);
    t->str = t->n;
    t->str_size = sizeof toy_strings;
    memcpy(t->b + t->n, toy_strings, sizeof toy_strings);
    t->n += sizeof toy_strings;
    toy_align(t, 2);
    t->versym = t->n;
    toy_add(t, 2, 0);
    toy_add(t, 2, 3);
    toy_add(t, 2, 2);
    toy_add(t, 2, 1);
    toy_add(t, 2, 2);
    toy_align(t, 4);
}

static inline void toy_versions(struct elf_toy *t)
{
    t->verneed = t->n;
    toy_add(t, 2, 1);
    toy_add(t, 2, 1);
    toy_add(t, 4, TOY_LIBC);
    toy_add(t, 4, 16);
    toy_add(t, 4, 0);
    toy_add(t, 4, 0x0);
    toy_add(t, 2, 0);
    toy_add(t, 2, 3);
    toy_add(t, 4, TOY_V1);
    toy_add(t, 4, 0);
    t->verdef = t->n;
    toy_add(t, 2, 1);
    toy_add(t, 2, 0);
    toy_add(t, 2, 2);
    toy_add(t, 2, 1);
    toy_add(t, 4, 0);
    toy_add(t, 4, 20);
    toy_add(t, 4, 0);
    toy_add(t, 4, TOY_V2);
    toy_add(t, 4, 0);
}

static inline void toy_dynamic(struct elf_toy *t)
{
    t->dyn = t->n = TOY_DATA;
    toy_dyn(t, DT_NEEDED, TOY_LIBC);
    toy_dyn(t, DT_SONAME, TOY_SONAME);
    toy_dyn(t, DT_RUNPATH, TOY_PATH);
    toy_dyn(t, DT_STRTAB, t->str);
    toy_dyn(t, DT_STRSZ, t->str_size);
    toy_dyn(t, DT_SYMTAB, t->sym);
    toy_dyn(t, DT_SYMENT, t->wide ? 24 : 16);
    toy_dyn(t, DT_HASH, t->hash);
    toy_dyn(t, DT_GNU_HASH, t->gnu);
    toy_dyn(t, DT_VERSYM, t->versym);
    toy_dyn(t, DT_VERNEED, t->verneed);
    toy_dyn(t, DT_VERNEEDNUM, 1);
    toy_dyn(t, DT_VERDEF, t->verdef);
    toy_dyn(t, DT_VERDEFNUM, 1);
    toy_dyn(t, DT_FLAGS_1, DF_1_NODELETE | DF_1_NOW);
    toy_dyn(t, DT_NULL, 0);
    toy_dyn(t, DT_NULL, 0);
    toy_dyn(t, DT_NULL, 0);
}

static inline void toy_shdr(struct elf_toy *t, uint32_t type, uint64_t flags, uint64_t at,
                            uint64_t offset, uint64_t size)
{
    toy_add(t, 4, 0);
    toy_add(t, 4, type);
    toy_add(t, toy_word(t), flags);
    toy_add(t, toy_word(t), at);
    toy_add(t, toy_word(t), offset);
    toy_add(t, toy_word(t), size);
    toy_add(t, 4, 0);
    toy_add(t, 4, 0);
    toy_add(t, toy_word(t), 8);
    toy_add(t, toy_word(t), 0);
}

static inline void toy_headers(struct elf_toy *t, size_t text_end, size_t data_end)
{
    static const uint8_t magic[] = {0x7f, 'E', 'L', 'F'};

    t->n = 16;
    memcpy(t->b, magic, 4);
    t->b[EI_CLASS] = t->wide ? ELFCLASS64 : ELFCLASS32;
    t->b[EI_DATA] = t->big ? ELFDATA2MSB : ELFDATA2LSB;
    t->b[EI_VERSION] = EV_CURRENT;
    toy_add(t, 2, ET_DYN);
    toy_add(t, 2, t->big ? EM_PPC64 : t->wide ? EM_X86_64 : EM_386);
    toy_add(t, 4, EV_CURRENT);
    toy_add(t, toy_word(t), 0);
    toy_add(t, toy_word(t), t->phdr);
    toy_add(t, toy_word(t), t->shdr);
    toy_add(t, 4, 0);
    toy_add(t, 2, t->wide ? 64 : 52);
    toy_add(t, 2, t->wide ? 56 : 32);
    toy_add(t, 2, TOY_PHDRS);
    toy_add(t, 2, t->wide ? 64 : 40);
    toy_add(t, 2, 5);
    toy_add(t, 2, 0);
    toy_phdr(t, PT_LOAD, PF_R, 0, 0, text_end, 0x1000);
    toy_phdr(t, PT_LOAD, PF_R | PF_W, TOY_DATA, TOY_DATA_VADDR, data_end - TOY_DATA, 0x1000);
    toy_phdr(t, PT_DYNAMIC, PF_R | PF_W, TOY_DATA, TOY_DATA_VADDR, data_end - TOY_DATA, 8);
    toy_phdr(t, PT_NOTE, PF_R, t->note, t->note, 24, 4);
    toy_phdr(t, PT_GNU_STACK, PF_R | PF_W, 0, 0, 0, 16);
}

static inline void elf_toy_make(struct elf_toy *t, bool wide, bool big)
{
    size_t text_end, data_end, end;

    *t = (struct elf_toy){.wide = wide, .big = big};
    t->phdr = wide ? 64 : 52;
    t->n = t->phdr + TOY_PHDRS * (wide ? 56u : 32u);
    toy_align(t, 8);
    toy_tables(t);
    toy_versions(t);
    text_end = t->n;
    toy_dynamic(t);
    data_end = t->n;
    t->shdr = t->n;
    toy_shdr(t, SHT_NULL, 0, 0, 0, 0);
    toy_shdr(t, SHT_DYNAMIC, SHF_ALLOC | SHF_WRITE, TOY_DATA_VADDR, TOY_DATA, data_end - TOY_DATA);
    toy_shdr(t, SHT_STRTAB, SHF_ALLOC, t->str, t->str, t->str_size);
    toy_shdr(t, SHT_DYNSYM, SHF_ALLOC, t->sym, t->sym, t->str - t->sym);
    toy_shdr(t, SHT_GNU_HASH, SHF_ALLOC, t->gnu, t->gnu, t->sym - t->gnu);
    end = t->n;
    toy_headers(t, text_end, data_end);
    t->n = end;
}

/* Writes to `out`, of zeros, the 64-bit toy and behind it a program header table of `count`
 * entries, the toy's and then copies of `more` (PHDR bytes).  Returns the file's size without
 * the zeros that the caller may leave behind it. */
static inline size_t elf_toy_crowd(const struct elf_toy *t, size_t count, const uint8_t *more,
                                   uint8_t *out)
{
    const size_t size = 56, at = (t->n + 7) / 8 * 8;
    struct elf_toy head = *t;

    toy_put(&head, 32, 8, at);
    toy_put(&head, 56, 2, count);
    memcpy(out, head.b, t->n);
    memcpy(out + at, t->b + t->phdr, TOY_PHDRS * size);
    for (size_t i = TOY_PHDRS; i < count; i++)
        memcpy(out + at + i * size, more, size);
    return at + count * size;
}

#endif
