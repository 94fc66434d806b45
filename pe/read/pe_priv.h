/* One PE image (a DLL) opened for reading, and the pieces of the PE format's own operations. */
#ifndef PE_READ_PE_PRIV_H
#define PE_READ_PE_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/format.h"
#include "base/plan.h"
#include "base/span.h"
#include "pe/read/pe_defs.h"

/* ---- the file, pe_read.c pe_section.c pe_directory.c ---------------------------------------------- */

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

/* The file's bytes for `len` bytes at `rva`, all within one section's raw data (or the headers). */
int exti__pe_at(const struct pe_file *f, uint32_t rva, uint64_t len, const char *what,
                struct exti_span *out, struct exti_error *err);
/* The same from `rva` to the end of what its section has in the file. */
int exti__pe_from(const struct pe_file *f, uint32_t rva, const char *what, struct exti_span *out,
                  struct exti_error *err);
/* A NUL-terminated string of at most `most` bytes at `rva`. */
int exti__pe_string(const struct pe_file *f, uint32_t rva, size_t most, const char *what,
                    const char **out, struct exti_error *err);
/* Where an address led nowhere, the fault lies in the field at `at` that holds it.  Returns `rc`. */
int exti__pe_error_at(int rc, uint64_t at, struct exti_error *err);
/* The section that `rva` lies in, up to the start of the next, or NULL. */
const struct pe_section *exti__pe_section_of(const struct pe_file *f, uint32_t rva);

/* ---- imports, pe_import.c ------------------------------------------------------------------------- */

struct pe_import {
    const char *name; /* of the DLL */
    uint64_t at;      /* file offset of its descriptor */
    uint64_t name_at; /* file offset of the field that holds the name's address */
    uint32_t name_rva;
    uint32_t lookup_rva; /* its table of names: OriginalFirstThunk, or FirstThunk without one */
    uint64_t lookup_at;  /* file offset of the field that holds its address */
    uint32_t iat_rva, timestamp;
    bool delay;
    bool by_address; /* delay, version 1: fields hold addresses, not RVAs */
};

/* Calls `each` for every import descriptor, then every delay import descriptor, in order, until it
 * returns non-zero, which is passed on.  EXTI_E_UNSUPPORTED for a bound DLL without a table of names
 * but the addresses that took their place. */
int exti__pe_imports(const struct pe_file *f,
                     int (*each)(void *user, const struct pe_import *im, struct exti_error *err),
                     void *user, struct exti_error *err);

/* Calls `each` for every symbol of one import; `name` is NULL for one by ordinal. */
int exti__pe_import_symbols(const struct pe_file *f, const struct pe_import *im,
                            int (*each)(void *user, const char *name, uint16_t ordinal,
                                        struct exti_error *err),
                            void *user, struct exti_error *err);

/* ---- exports, pe_export.c -------------------------------------------------------------------------- */

struct pe_export {
    const char *name; /* NULL: by ordinal only */
    uint32_t ordinal; /* with the base added */
    uint32_t rva;
    const char *forwarder; /* "dll.symbol", or NULL */
    uint64_t slot_at;      /* file offset of its entry in the address table */
};

struct pe_exports {
    bool present;
    const char *dll; /* the export directory's name, or NULL */
    uint64_t at, name_at;
    uint32_t rva, size, base, function_count, name_count;
    uint32_t functions_rva, names_rva, ordinals_rva;
};

int exti__pe_exports_open(const struct pe_file *f, struct pe_exports *out, struct exti_error *err);
/* Calls `each` for every used slot of the address table, by ordinal; named ones once for each name. */
int exti__pe_exports(const struct pe_file *f, const struct pe_exports *x,
                     int (*each)(void *user, const struct pe_export *e, struct exti_error *err),
                     void *user, struct exti_error *err);

/* ---- the checksum, pe_checksum.c --------------------------------------------------------------------- */

/* The image's checksum as ImageHlp's MapFileAndCheckSum computes it over `parts`, one behind the other;
 * `field` is where CheckSum stands, which counts as 0. */
uint32_t exti__pe_checksum(const struct exti_span *parts, size_t count, uint64_t field);

/* ---- the format's operations (loader/base/format.h) -------------------------------------------------- */

int exti__pe_read(struct exti_span file, struct exti_image *im, struct exti_error *err);
int exti__pe_plan(struct exti_span file, const struct exti_request *req, struct exti_plan *plan,
                  struct exti_error *err);
int exti__pe_check(struct exti_span before, struct exti_span after, const struct exti_request *req,
                   const struct exti_plan *plan, exti_report_fn report, void *user,
                   struct exti_error *err);

#endif
