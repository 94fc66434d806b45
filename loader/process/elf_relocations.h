/* This machine's relocation types that bind a name, from the psABIs.  RISC-V has no GLOB_DAT and
 * uses the absolute type. */
#ifndef LOADER_PROCESS_ELF_RELOCATIONS_H
#define LOADER_PROCESS_ELF_RELOCATIONS_H

#include <elf.h>
#include <link.h>

#if defined(__x86_64__)
#define RELOC_ABSOLUTE R_X86_64_64
#define RELOC_COPY R_X86_64_COPY
#define RELOC_GLOB_DAT R_X86_64_GLOB_DAT
#define RELOC_JUMP_SLOT R_X86_64_JUMP_SLOT
#define RELOC_TLS_MODULE R_X86_64_DTPMOD64
#define RELOC_TLS_OFFSET R_X86_64_TPOFF64
#define RELOC_TLS_DESCRIPTOR R_X86_64_TLSDESC
#elif defined(__aarch64__)
#define RELOC_ABSOLUTE R_AARCH64_ABS64
#define RELOC_COPY R_AARCH64_COPY
#define RELOC_GLOB_DAT R_AARCH64_GLOB_DAT
#define RELOC_JUMP_SLOT R_AARCH64_JUMP_SLOT
#define RELOC_TLS_MODULE R_AARCH64_TLS_DTPMOD
#define RELOC_TLS_OFFSET R_AARCH64_TLS_TPREL
#define RELOC_TLS_DESCRIPTOR R_AARCH64_TLSDESC
#elif defined(__i386__)
#define RELOC_ABSOLUTE R_386_32
#define RELOC_COPY R_386_COPY
#define RELOC_GLOB_DAT R_386_GLOB_DAT
#define RELOC_JUMP_SLOT R_386_JMP_SLOT
#define RELOC_TLS_MODULE R_386_TLS_DTPMOD32
#define RELOC_TLS_OFFSET R_386_TLS_TPOFF
#define RELOC_TLS_DESCRIPTOR R_386_TLS_DESC
#elif defined(__riscv) && __riscv_xlen == 64
#define RELOC_ABSOLUTE R_RISCV_64
#define RELOC_COPY R_RISCV_COPY
#define RELOC_GLOB_DAT R_RISCV_64
#define RELOC_JUMP_SLOT R_RISCV_JUMP_SLOT
#define RELOC_TLS_MODULE R_RISCV_TLS_DTPMOD64
#define RELOC_TLS_OFFSET R_RISCV_TLS_TPREL64
#define RELOC_TLS_DESCRIPTOR 12 /* R_RISCV_TLSDESC; older versions of <elf.h> lack it */
#else
#error "the relocation types of this machine are not known"
#endif

#if __ELF_NATIVE_CLASS == 64
#define RELOC_SYMBOL(info) ELF64_R_SYM(info)
#define RELOC_TYPE(info) ELF64_R_TYPE(info)
#else
#define RELOC_SYMBOL(info) ELF32_R_SYM(info)
#define RELOC_TYPE(info) ELF32_R_TYPE(info)
#endif

#endif
