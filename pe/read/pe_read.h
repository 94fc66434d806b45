/* What the files that open a PE image share. */
#ifndef PE_READ_PE_READ_H
#define PE_READ_PE_READ_H

#include "pe/read/pe_priv.h"

/* Reads and checks the section table, which ends at `table_end`. */
int exti__pe_read_sections(struct pe_file *f, uint64_t table_end, struct exti_error *err);
/* Checks where the directories lie and what they say about the kind of file. */
int exti__pe_check_directories(struct pe_file *f, struct exti_error *err);

#endif
