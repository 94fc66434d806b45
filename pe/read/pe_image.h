/* Describing a DLL for the loader: the `read` of struct exti_format_ops. */
#ifndef PE_READ_PE_IMAGE_H
#define PE_READ_PE_IMAGE_H

#include "base/format.h"

/* Fills the zeroed `im`, which points into `file`; on failure `im` is empty. */
int exti__pe_read(struct exti_span file, struct exti_image *im, struct exti_error *err);

#endif
