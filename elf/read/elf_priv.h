/* One shared object opened for reading, and the pieces of the ELF format's own operations.
 *
 * The truth is what the system's loader uses: the ELF header, the program headers and what
 * PT_DYNAMIC points at.  Section headers are metadata that a rewrite keeps consistent. */
#ifndef ELF_READ_ELF_PRIV_H
#define ELF_READ_ELF_PRIV_H

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/format.h"
#include "base/plan.h"
#include "base/span.h"

/* Missing from older elf.h. */
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

/* A structure that a dynamic tag points at.  `present` is false when the tag is missing.  `s` is what
 * it may use: exactly its bytes where a tag or the table itself tells the size, else everything to
 * the end of its segment's file bytes.  s.base is the file offset. */
struct elf_part {
    bool present;
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
    struct exti_span bucket, chain; /* words of hash_word bytes, as struct elf_file has it */
};

struct elf_file {
    struct exti_span file;
    Elf *elf;
    bool is64, big_endian;
    GElf_Ehdr ehdr;

    GElf_Phdr *phdr;
    size_t phnum;
    GElf_Shdr *shdr; /* NULL when the file has none, or they lie outside it */
    size_t shnum;    /* true number, extended numbering included */

    size_t dynamic_phdr; /* index of PT_DYNAMIC */
    GElf_Dyn *dyn;       /* every slot that fits PT_DYNAMIC's file bytes */
    size_t dyn_slots;
    size_t dyn_count; /* of those before the first DT_NULL */

    struct elf_part strtab; /* exactly DT_STRSZ bytes */
    struct elf_part symtab; /* exactly sym_count entries */
    GElf_Sym *sym;          /* the same, decoded */
    size_t sym_count;       /* 0 when there is no symbol table; entry 0 counts */
    struct elf_part versym; /* exactly sym_count entries */
    struct elf_part verdef, verneed;
    struct elf_part hash, gnu_hash;
    size_t hash_word;          /* bytes of a DT_HASH word: 8 on s390x and alpha, else 4 */
    struct elf_sysv_hash sysv; /* of `hash`, when it is present */
    struct elf_gnu_hash gnu;   /* of `gnu_hash`, likewise */
};

/* ---- elf_read.c ------------------------------------------------------------------------------- */

/* Opens and validates.  EXTI_E_FORMAT for malformed files, EXTI_E_UNSUPPORTED for other kinds of ELF
 * file than a shared object.  `file` must outlive `f`.  On failure nothing is left to close. */
int exti__elf_open(struct exti_span file, struct elf_file *f, struct exti_error *err);
/* The same, of a program too, which may have fixed addresses. */
int exti__elf_open_program(struct exti_span file, struct elf_file *f, struct exti_error *err);
void exti__elf_close(struct elf_file *f);

/* The file's bytes for `len` bytes at `vaddr`, all within the file part of one PT_LOAD. */
int exti__elf_at(const struct elf_file *f, uint64_t vaddr, uint64_t len, const char *what,
                 struct exti_span *out, struct exti_error *err);
/* The same from `vaddr` to the end of its PT_LOAD's file bytes. */
int exti__elf_from(const struct elf_file *f, uint64_t vaddr, const char *what,
                   struct exti_span *out, struct exti_error *err);

/* The last entry with that tag before DT_NULL (the one loaders obey), or NULL. */
const GElf_Dyn *exti__elf_tag(const struct elf_file *f, int64_t tag);
/* The string at offset `off` of DT_STRTAB. */
int exti__elf_str(const struct elf_file *f, uint64_t off, const char *what, const char **out,
                  struct exti_error *err);
/* Whether a dynamic tag's value is an offset into DT_STRTAB. */
bool exti__elf_tag_is_string(int64_t tag);

/* The bytes of `s`, decoded by libelf: entries of `type`.  NULL when it cannot. */
Elf_Data *exti__elf_chunk(const struct elf_file *f, struct exti_span s, Elf_Type type);
int exti__elf_libelf_failed(struct exti_error *err, const char *what);

/* Part of exti__elf_open.  Fills symtab, sym, sym_count and versym: the tables
 * have no size of their own, so the hash tables or else the relocations give it. */
int exti__elf_read_symbols(struct elf_file *f, struct exti_error *err);
/* Symbol `i`'s versym word; 1 (global, no version) without DT_VERSYM. */
uint16_t exti__elf_versym(const struct elf_file *f, size_t i);
uint64_t exti__elf_sym_offset(const struct elf_file *f, size_t i); /* file offset of entry `i` */

/* Sizes of this class's records. */
size_t exti__elf_dyn_size(const struct elf_file *f);
size_t exti__elf_sym_size(const struct elf_file *f);
size_t exti__elf_phdr_size(const struct elf_file *f);
size_t exti__elf_shdr_size(const struct elf_file *f);
uint64_t exti__elf_dyn_offset(const struct elf_file *f, size_t i); /* file offset of slot `i` */
uint64_t exti__elf_page(const struct elf_file *f); /* the largest page its machine may use */

/* ---- elf_version.c ------------------------------------------------------------------------------ */

/* One string reference of the version tables: a Verdaux of definition `index`, a vn_file (index 0)
 * or a Vernaux (version `index`). */
enum elf_version_kind {
    ELF_VERSION_DEF,
    ELF_VERSION_DEF_PARENT,
    ELF_VERSION_FILE,
    ELF_VERSION_NEED
};
struct elf_version_ref {
    enum elf_version_kind kind;
    uint16_t index;
    uint64_t name;    /* offset into DT_STRTAB */
    uint64_t name_at; /* file offset of the 32-bit word that holds `name` */
    uint64_t file;    /* ELF_VERSION_NEED: its vn_file */
};
/* Calls `each` for every reference, in table order, until it returns non-zero, which is passed on. */
int exti__elf_versions(const struct elf_file *f,
                       int (*each)(void *user, const struct elf_version_ref *ref,
                                   struct exti_error *err),
                       void *user, struct exti_error *err);

/* Version names by the index in a versym word (less the hidden bit), of definitions and needs alike.
 * Free `names` with exti__free. */
struct elf_version_names {
    const struct elf_file *f;
    const char **names; /* NULL where the index has none */
    size_t count;
};
int exti__elf_version_names(const struct elf_file *f, struct elf_version_names *out,
                            struct exti_error *err);
/* Symbol `i`'s version, or NULL. */
const char *exti__elf_sym_version(const struct elf_version_names *v, size_t i);
/* Whether the symbol called `name` stands for a version definition: nothing to bind to. */
bool exti__elf_is_version_node(const struct elf_version_names *v, size_t i, const char *name);

/* ---- elf_hash.c: the two symbol hash tables ------------------------------------------------------ */

uint32_t exti__elf_gnu_hash(const char *name);
uint32_t exti__elf_sysv_hash(const char *name);

/* Part of exti__elf_open: fill gnu and sysv. */
int exti__elf_gnu_table(struct elf_file *f, struct exti_error *err);
int exti__elf_sysv_table(struct elf_file *f, struct exti_error *err);
/* Word `i` of a table of 32-bit words, or of `size` (4 or 8) byte words; 0 past its end. */
uint32_t exti__elf_word(const struct elf_file *f, struct exti_span table, size_t i);
uint64_t exti__elf_word_of(const struct elf_file *f, struct exti_span table, size_t i, size_t size);

/* ---- encoding: native values to this file's class and byte order --------------------------------- */

void exti__elf_put_half(const struct elf_file *f, uint8_t *p, uint16_t v);
void exti__elf_put_word(const struct elf_file *f, uint8_t *p, uint32_t v);
void exti__elf_put_addr(const struct elf_file *f, uint8_t *p, uint64_t v); /* 4 or 8 bytes */
void exti__elf_put_dyn(const struct elf_file *f, uint8_t *p, const GElf_Dyn *d);
void exti__elf_put_phdr(const struct elf_file *f, uint8_t *p, const GElf_Phdr *ph);
void exti__elf_put_shdr(const struct elf_file *f, uint8_t *p, const GElf_Shdr *sh);

/* ---- the operations ------------------------------------------------------------------------------ */

int exti__elf_read(struct exti_span file, struct exti_image *im, struct exti_error *err);
int exti__elf_plan(struct exti_span file, const struct exti_request *req, struct exti_plan *plan,
                   struct exti_error *err);
int exti__elf_check(struct exti_span before, struct exti_span after, const struct exti_request *req,
                    const struct exti_plan *plan, exti_report_fn report, void *user,
                    struct exti_error *err);

#endif
