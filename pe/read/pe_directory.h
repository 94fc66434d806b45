/* Checks the data directories. */
#ifndef PE_READ_PE_DIRECTORY_H
#define PE_READ_PE_DIRECTORY_H

#include "pe/read/pe_file.h"

/* Checks that the directories lie in sections and that they are those of a native DLL for one
 * machine (EXTI_E_UNSUPPORTED otherwise).  Sets f->overlay_end and the DependentLoadFlags
 * fields. */
int exti__pe_check_directories(struct pe_file *f, struct exti_error *err);

#endif
