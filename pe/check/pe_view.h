/* The self-check's own reading of a PE file: headers, sections, and the bytes at an address.  It is
 * independent of pe/read, so that a fault of the rewriter's decoder does not hide itself.  Getters
 * return false or NULL without a message. */
#ifndef PE_CHECK_PE_VIEW_H
#define PE_CHECK_PE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "pe/read/pe_defs.h"

#define PE_VIEW_LONGEST_SYMBOL 8192u /* longer names of symbols are not read */

struct pe_view_section {
    char name[9];
    uint32_t virtual_size, rva, raw_size, raw_at, flags;
    uint64_t at;     /* file offset of its header */
    uint64_t extent; /* its size in memory, as the header says */
    uint64_t mapped; /* and in whole pages, which the loader fills from the file */
    uint64_t backed; /* the part of `mapped` that the file holds */
};

struct pe_view {
    struct exti_span file;
    uint64_t nt, optional, table, table_end; /* file offsets of the headers */
    bool plus;
    uint16_t machine, magic, optional_size, flags, dll_flags;
    uint64_t base;
    uint32_t section_align, file_align, image_size, header_size, checksum;
    uint32_t symbols_at, symbol_count;
    uint32_t directory_count; /* NumberOfRvaAndSizes */
    struct {
        uint32_t rva, size;
    } directory[IMAGE_NUMBEROF_DIRECTORY_ENTRIES];
    struct pe_view_section *sections; /* owned */
    size_t section_count;             /* at most PE_MOST_SECTIONS */
    uint16_t sections_said;
};

/* Fails for files whose headers cannot be read.  `file` must outlive `v`; close it in any case. */
int exti__pe_view_open(struct exti_span file, struct pe_view *v, struct exti_error *err);
void exti__pe_view_close(struct pe_view *v);
/* Little-endian words. */
uint16_t exti__pe_word16(const uint8_t *p);
uint32_t exti__pe_word32(const uint8_t *p);
uint64_t exti__pe_word64(const uint8_t *p);
/* `n` bytes at `rva`, all in one section or the headers. */
bool exti__pe_view_at(const struct pe_view *v, uint64_t rva, uint64_t n, struct exti_span *out);
/* All bytes from `rva` to the end of its section's bytes in the file. */
bool exti__pe_view_from(const struct pe_view *v, uint64_t rva, struct exti_span *out);
/* The string at `rva`, or NULL if it is not in the file or longer than `most`. */
const char *exti__pe_view_text(const struct pe_view *v, uint64_t rva, size_t most);
/* Whether one section has `n` bytes of memory at `rva`. */
bool exti__pe_view_mapped(const struct pe_view *v, uint64_t rva, uint64_t n);
const struct pe_view_section *exti__pe_view_section(const struct pe_view *v, uint64_t rva);
/* Whether there is a certificate table, and its file offsets. */
bool exti__pe_view_signed(const struct pe_view *v, uint64_t *at, uint64_t *end);

#endif
