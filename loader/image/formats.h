/* The file formats that this library knows.  Pure; any thread. */
#ifndef LOADER_IMAGE_FORMATS_H
#define LOADER_IMAGE_FORMATS_H

#include "base/format.h"

/* The format of `file`.  Otherwise EXTI_E_UNSUPPORTED for a kind of file that the message names, or
 * EXTI_E_FORMAT. */
int exti__format_of(struct exti_span file, const struct exti_format_ops **out,
                    struct exti_error *err);

/* The unread parts of a file of any of these formats. */
extern const struct exti_unread_ops exti__formats_unread;

#endif
