/* One PE image (a DLL) opened for reading: its headers, sections and data directories.
 *
 * pe/read decodes PE files: headers, addresses, imports, exports, and the description of a file for the
 * loader.  It uses base/ alone.  pe/edit plans changes with it, and pe/check opens the original with it.
 * Nothing here does file I/O or has state; any thread. */
#ifndef PE_READ_PE_FILE_H
#define PE_READ_PE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "pe/read/pe_defs.h"

struct pe_section {
    uint64_t at; /* file offset of its header */
    char name[9];
    uint32_t virtual_size; /* never 0: SizeOfRawData where the header says 0 */
    uint32_t rva;
    uint32_t raw_size; /* 0 where the header says that the file has nothing of it */
    uint32_t raw_offset, characteristics;
};

struct pe_directory_entry {
    uint64_t at; /* file offset of the entry */
    uint32_t rva, size;
};

struct pe_file {
    struct exti_span file;
    uint64_t nt_at, optional_at, sections_at; /* file offsets of the headers */
    bool plus;                                /* PE32+ */
    uint16_t machine, characteristics, dll_characteristics;
    uint64_t image_base;
    uint32_t section_alignment, file_alignment, size_of_image, size_of_headers, checksum;
    uint32_t symbols_at, symbol_count; /* COFF symbol table, 0 if none */
    struct pe_directory_entry directories[IMAGE_NUMBEROF_DIRECTORY_ENTRIES];
    size_t directory_count;
    struct pe_section *sections;
    size_t section_count;
    uint64_t raw_end;     /* end of the last section's bytes */
    uint64_t overlay_end; /* end of what follows them, a certificate table at the end left out */
    uint64_t dependent_load_flags_at; /* in the load configuration; 0 if there is no such field */
    uint16_t dependent_load_flags;
};

/* Opens and validates headers, sections and the bounds of the directories.  EXTI_E_FORMAT for malformed
 * files, EXTI_E_UNSUPPORTED for well-formed ones of another kind (MS-DOS programs, EXEs, objects,
 * ARM64EC/X, .NET), told in the message.  `file` must outlive `f`. */
int exti__pe_open(struct exti_span file, struct pe_file *f, struct exti_error *err);
void exti__pe_close(struct pe_file *f);

const char *exti__pe_machine(uint16_t machine); /* "x86-64", "i386", "arm64"; static */

/* Why no copy of the file can be loaded beside it, a static text, and the field that says so (`at` may
 * be NULL); NULL if one can. */
const char *exti__pe_unfit(const struct pe_file *f, uint64_t *at);

#endif
