/* The room read/ opens one shared object and answers questions about it.  It uses base/ and libelf
 * only (libelf never writes); edit/ and check/ build on it, and elf_format.c on top calls
 * exti__elf_read.
 *
 * The reader takes what the system's loader uses as the truth: the ELF header, the program headers
 * and the tables that PT_DYNAMIC points at.  Section headers are metadata that a rewrite keeps
 * consistent.
 *
 * This header has the opened file (struct elf_file, filled in by elf_open.h) and look-ups in it.
 * They only read it, so several threads may share one, except exti__elf_decode: libelf caches what
 * it decodes. */
#ifndef ELF_READ_ELF_FILE_H
#define ELF_READ_ELF_FILE_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "base/unread.h"

/* Older versions of <elf.h> lack these. */
#ifndef DT_GNU_HASH
#define DT_GNU_HASH 0x6ffffef5
#endif
#ifndef DT_RELR
#define DT_RELRSZ 35
#define DT_RELR 36
#define DT_RELRENT 37
#endif
#ifndef DT_MIPS_XHASH
#define DT_MIPS_XHASH 0x70000036
#endif
#ifndef DT_MIPS_RLD_MAP_REL
#define DT_MIPS_RLD_MAP_REL 0x70000035
#endif
#ifndef PT_GNU_PROPERTY
#define PT_GNU_PROPERTY 0x6474e553
#endif

/* A table that a dynamic tag points at.  `s` covers exactly the table where a tag or the table
 * itself gives the size, otherwise everything up to the end of the segment's file bytes.  s.base is
 * the file offset. */
struct elf_part {
    bool present; /* false: the file has no such tag */
    uint64_t vaddr;
    struct exti_span s;
};

/* DT_GNU_HASH as laid out in the file; buckets and chains are 32-bit words. */
struct elf_gnu_hash {
    uint32_t buckets, first, bloom_words, shift;
    struct exti_span bloom, bucket, chain; /* chain: a word per hashed symbol, from `first` on */
};
struct elf_sysv_hash {
    uint64_t buckets, chains;
    struct exti_span bucket, chain; /* words of elf_file.hash_word bytes */
};

struct elf_file {
    struct exti_span file;
    Elf *elf;
    bool is64, big_endian;
    GElf_Ehdr ehdr;

    GElf_Phdr *phdr;
    size_t phnum;
    GElf_Shdr *shdr; /* NULL when the file has no section headers or they lie outside it */
    size_t shnum;    /* the true number, also with extended numbering */

    struct exti_unread unread; /* bytes that the caller may have left out */

    size_t dynamic_phdr; /* index of PT_DYNAMIC */
    GElf_Dyn *dyn;       /* all slots that fit in PT_DYNAMIC's file bytes */
    size_t dyn_slots;
    size_t dyn_count; /* slots before the first DT_NULL */

    struct elf_part strtab; /* exactly DT_STRSZ bytes */
    struct elf_part symtab; /* exactly sym_count entries */
    GElf_Sym *sym;          /* the entries of `symtab`, decoded */
    size_t sym_count;       /* includes entry 0; 0 without a symbol table */
    struct elf_part versym; /* exactly sym_count entries */
    struct elf_part verdef, verneed;
    struct elf_part hash, gnu_hash;
    size_t hash_word;          /* bytes of a DT_HASH word: 8 on s390x and alpha, else 4 */
    struct elf_sysv_hash sysv; /* decoded from `hash` when that is present */
    struct elf_gnu_hash gnu;   /* decoded from `gnu_hash` when that is present */
};

/* In each function below `what` names the structure in the error message. */

/* Gives the file's bytes for `len` bytes at `vaddr`.  EXTI_E_FORMAT unless one PT_LOAD's file part
 * holds them all, and all are read. */
int exti__elf_bytes_at(const struct elf_file *f, uint64_t vaddr, uint64_t len, const char *what,
                       struct exti_span *out, struct exti_error *err);
/* Gives the file's bytes from `vaddr` to the end of its PT_LOAD's file part, or to bytes that are
 * not read. */
int exti__elf_bytes_from(const struct elf_file *f, uint64_t vaddr, const char *what,
                         struct exti_span *out, struct exti_error *err);

/* The last entry with that tag before DT_NULL, which is the one that loaders obey, or NULL. */
const GElf_Dyn *exti__elf_tag(const struct elf_file *f, int64_t tag);
/* Gives the string at offset `off` of DT_STRTAB. */
int exti__elf_string(const struct elf_file *f, uint64_t off, const char *what, const char **out,
                     struct exti_error *err);
/* Whether a dynamic tag's value is an offset into DT_STRTAB. */
bool exti__elf_tag_is_string(int64_t tag);
/* Whether a dynamic tag's value is an address. */
bool exti__elf_tag_is_pointer(int64_t tag);

/* The name of a section, for messages and for those that tools know by name. */
const char *exti__elf_section_name(const struct elf_file *f, const GElf_Shdr *section);

/* Decodes the entries of `type` in `s` with libelf, which owns the result; NULL on failure. */
Elf_Data *exti__elf_decode(const struct elf_file *f, struct exti_span s, Elf_Type type);
/* Reports libelf's last error: EXTI_E_NOMEM if it had no memory, else EXTI_E_FORMAT. */
int exti__elf_libelf_failed(struct exti_error *err, const char *what);

/* Word `i` of a table of 32-bit words; 0 past its end. */
uint32_t exti__elf_word(const struct elf_file *f, struct exti_span table, size_t i);
/* Word `i` of a table of `size`-byte words (2, 4 or 8); 0 past its end. */
uint64_t exti__elf_word_of(const struct elf_file *f, struct exti_span table, size_t i, size_t size);

/* Record sizes in bytes for the file's class. */
size_t exti__elf_dyn_size(const struct elf_file *f);
size_t exti__elf_sym_size(const struct elf_file *f);
size_t exti__elf_phdr_size(const struct elf_file *f);
size_t exti__elf_shdr_size(const struct elf_file *f);
uint64_t exti__elf_dyn_offset(const struct elf_file *f, size_t i); /* file offset of slot `i` */
uint64_t exti__elf_page_size(const struct elf_file *f); /* the largest page its machine may use */

#endif
