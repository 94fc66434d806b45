/* Reads the section table. */
#ifndef PE_READ_PE_SECTION_H
#define PE_READ_PE_SECTION_H

#include "pe/read/pe_file.h"

/* Reads the section headers, which end at file offset `table_end`, into f->sections, checks their
 * places in memory and in the file, and sets f->raw_end. */
int exti__pe_read_sections(struct pe_file *f, uint64_t table_end, struct exti_error *err);

#endif
