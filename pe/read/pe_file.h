/* One PE image (a DLL) opened for reading: its headers, sections and data directories.
 *
 * pe/read decodes PE files: headers, addresses, imports, exports, and the loader's description of a
 * file.  It uses base/ alone.  pe/edit plans changes with it; pe/check opens the original with it.
 * No file I/O and no globals; any thread. */
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
    uint32_t virtual_size; /* SizeOfRawData if the header has 0; never 0 */
    uint32_t rva;
    uint32_t raw_size; /* 0 if PointerToRawData is 0 */
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
    uint32_t symbols_at, symbol_count; /* of the COFF symbol table; 0 without one */
    struct pe_directory_entry directories[IMAGE_NUMBEROF_DIRECTORY_ENTRIES];
    size_t directory_count;
    struct pe_section *sections;
    size_t section_count;
    uint64_t raw_end;     /* end of the last section's bytes */
    uint64_t overlay_end; /* end of the overlay; a final certificate table does not count */
    uint64_t dependent_load_flags_at; /* in the load configuration; 0 without the field */
    uint16_t dependent_load_flags;
};

/* Reads and validates the headers, the sections and the bounds of the directories.  EXTI_E_FORMAT
 * for malformed files; EXTI_E_UNSUPPORTED for well-formed files of another kind (MS-DOS programs,
 * EXEs, objects, ARM64EC/X, .NET), which the message names.  `file` must outlive `f`; close `f`
 * after success. */
int exti__pe_open(struct exti_span file, struct pe_file *f, struct exti_error *err);
void exti__pe_close(struct pe_file *f);

const char *exti__pe_machine(uint16_t machine); /* static text: "x86-64", "i386", "arm64"... */

/* Why a copy could not be loaded beside the original, as a static text, or NULL if it could.  *at
 * gets the file offset of the field that says so; `at` may be NULL. */
const char *exti__pe_unfit(const struct pe_file *f, uint64_t *at);

#endif
