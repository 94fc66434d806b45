/* The format's read operation. */
#ifndef MACHO_READ_MACHO_IMAGE_H
#define MACHO_READ_MACHO_IMAGE_H

#include "base/format.h"

/* struct exti_format_ops.read. */
int exti__macho_read(struct exti_span file, struct exti_image *im, struct exti_error *err);

#endif
