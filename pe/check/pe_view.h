/* A PE file as the self-check reads it: headers, sections, and what stands at an address. */
#ifndef PE_CHECK_PE_VIEW_H
#define PE_CHECK_PE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "pe/read/pe_defs.h"

#define PE_VIEW_LONGEST_SYMBOL 8192u /* the self-check reads no longer name of a symbol */

struct pe_view_section {
    char name[9];
    uint32_t virtual_size, rva, raw_size, raw_at, flags;
    uint64_t at;     /* of its header */
    uint64_t extent; /* bytes of the image that it takes */
    uint64_t backed; /* bytes of those that the file holds */
};

struct pe_view {
    struct exti_span file;
    uint64_t nt, optional, table, table_end; /* file offsets of the headers */
    bool plus;
    uint16_t machine, magic, optional_size, flags, dll_flags;
    uint64_t base;
    uint32_t section_align, file_align, image_size, header_size, checksum;
    uint32_t symbols_at, symbol_count;
    uint32_t directory_count; /* as the file says it */
    struct {
        uint32_t rva, size;
    } directory[IMAGE_NUMBEROF_DIRECTORY_ENTRIES];
    struct pe_view_section *sections; /* owned */
    size_t section_count;             /* PE_MOST_SECTIONS at most */
    uint16_t sections_said;
};

int exti__pe_view_open(struct exti_span file, struct pe_view *v, struct exti_error *err);
void exti__pe_view_close(struct pe_view *v);
uint16_t exti__pe_word16(const uint8_t *p);
uint32_t exti__pe_word32(const uint8_t *p);
uint64_t exti__pe_word64(const uint8_t *p);
/* The file's bytes for `n` bytes of the image, all in one section or the headers. */
bool exti__pe_view_at(const struct pe_view *v, uint64_t rva, uint64_t n, struct exti_span *out);
/* From `rva` to the end of what the file has of its section. */
bool exti__pe_view_from(const struct pe_view *v, uint64_t rva, struct exti_span *out);
/* The text at `rva`, NULL if it is not there or longer than `most`. */
const char *exti__pe_view_text(const struct pe_view *v, uint64_t rva, size_t most);
/* Whether the image has `n` bytes there, in one section. */
bool exti__pe_view_mapped(const struct pe_view *v, uint64_t rva, uint64_t n);
const struct pe_view_section *exti__pe_view_section(const struct pe_view *v, uint64_t rva);
/* Where a certificate table stands, which needs no section. */
bool exti__pe_view_signed(const struct pe_view *v, uint64_t *at, uint64_t *end);

#endif
