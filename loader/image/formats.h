/* The file formats this library knows. */
#ifndef LOADER_IMAGE_FORMATS_H
#define LOADER_IMAGE_FORMATS_H

#include "base/format.h"

/* The format of `file`, or EXTI_E_UNSUPPORTED with a guess at what the file is instead. */
int exti__format_of(struct exti_span file, const struct exti_format_ops **out,
                    struct exti_error *err);

#endif
