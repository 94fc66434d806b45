/* The symbol version tables, DT_VERDEF and DT_VERNEED. */
#ifndef ELF_READ_ELF_VERSION_H
#define ELF_READ_ELF_VERSION_H

#include "elf/read/elf_file.h"

/* One reference from the version tables to DT_STRTAB. */
enum elf_version_kind {
    ELF_VERSION_DEF,        /* first Verdaux of definition `index`: its name */
    ELF_VERSION_DEF_PARENT, /* a later Verdaux: the name of a version it inherits from */
    ELF_VERSION_FILE,       /* vn_file of a Verneed; `index` is 0 */
    ELF_VERSION_NEED        /* Vernaux: the name of needed version `index` */
};
struct elf_version_ref {
    enum elf_version_kind kind;
    uint16_t index;
    uint64_t name;    /* offset into DT_STRTAB */
    uint64_t name_at; /* file offset of the 32-bit word that holds `name` */
    uint64_t file;    /* ELF_VERSION_NEED: the vn_file of its Verneed */
};
/* Calls `each` for every reference, in table order.  A non-zero result of `each` ends the walk and
 * is returned. */
typedef int (*elf_version_fn)(void *user, const struct elf_version_ref *ref,
                              struct exti_error *err);
int exti__elf_versions(const struct elf_file *f, elf_version_fn each, void *user,
                       struct exti_error *err);

/* Names of defined and needed versions, by the index in a versym word without the hidden bit. */
struct elf_version_names {
    const struct elf_file *f;
    const char **names; /* owned: free with exti__free; NULL where the index has no version */
    size_t count;
};
int exti__elf_version_names(const struct elf_file *f, struct elf_version_names *out,
                            struct exti_error *err);
/* Symbol `i`'s version, or NULL. */
const char *exti__elf_sym_version(const struct elf_version_names *v, size_t i);
/* Whether symbol `i`, called `name`, stands for a version definition: nothing can bind to it. */
bool exti__elf_is_version_node(const struct elf_version_names *v, size_t i, const char *name);

#endif
