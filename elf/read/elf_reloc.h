/* The relocations that the system's loader applies. */
#ifndef ELF_READ_ELF_RELOC_H
#define ELF_READ_ELF_RELOC_H

#include "elf/read/elf_file.h"

struct elf_reloc {
    uint64_t place; /* an address */
    uint32_t type;
    uint64_t symbol; /* index in the dynamic symbol table */
    bool plt;        /* of DT_JMPREL */
};

/* Calls `each` for all relocations of the tables that the dynamic section names until it returns
 * false; relative ones that are packed (DT_RELR) or counted (DT_RELACOUNT) excepted. */
int exti__elf_each_reloc(const struct elf_file *f,
                         bool (*each)(void *user, const struct elf_reloc *r), void *user,
                         struct exti_error *err);

/* Gives the name of the type of the first relocation that asks for a place in the block that a
 * process has for static TLS; NULL if there is none. */
int exti__elf_static_tls(const struct elf_file *f, const char **out, struct exti_error *err);

#endif
