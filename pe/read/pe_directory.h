/* The data directories. */
#ifndef PE_READ_PE_DIRECTORY_H
#define PE_READ_PE_DIRECTORY_H

#include "pe/read/pe_file.h"

/* Checks where the directories lie and what they say about the kind of file. */
int exti__pe_check_directories(struct pe_file *f, struct exti_error *err);

#endif
