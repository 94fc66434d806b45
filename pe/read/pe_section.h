/* The section table. */
#ifndef PE_READ_PE_SECTION_H
#define PE_READ_PE_SECTION_H

#include "pe/read/pe_file.h"

/* Reads and checks the section table, which ends at `table_end`. */
int exti__pe_read_sections(struct pe_file *f, uint64_t table_end, struct exti_error *err);

#endif
