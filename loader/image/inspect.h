/* exti_inspect for the library's own use. */
#ifndef LOADER_IMAGE_INSPECT_H
#define LOADER_IMAGE_INSPECT_H

#include "base/format.h"
#include "base/os/fs.h"

/* As exti_inspect, but without looking for hazards, which copying does not ask about. */
int exti__inspect(const char *path, struct exti_image **out, struct exti_error *err);

/* Of the file as it was read; `im` is one of exti__inspect's or exti_inspect's. */
const struct exti_file_id *exti__inspected_id(const struct exti_image *im);

#endif
