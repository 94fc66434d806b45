/* The read operation: describing a shared object. */
#ifndef ELF_READ_ELF_IMAGE_H
#define ELF_READ_ELF_IMAGE_H

#include "base/format.h"

/* Describes `file` in the zeroed `im`, whose strings point into the file's bytes.  On failure `im`
 * is empty again. */
int exti__elf_read(struct exti_span file, struct exti_image *im, struct exti_error *err);

#endif
