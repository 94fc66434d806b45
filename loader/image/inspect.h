/* Reads one file into an image.  This room describes single files, on the formats alone;
 * rewriting, resolving and the store build on it. */
#ifndef LOADER_IMAGE_INSPECT_H
#define LOADER_IMAGE_INSPECT_H

#include "base/format.h"
#include "base/os/fs_id.h"
#include "base/os/fs_map.h"

/* exti_inspect without hazards, which copying does not need. */
int exti__inspect(const char *path, struct exti_image **out, struct exti_error *err);

/* The id of the file as it was read; `im` must come from exti__inspect or exti_inspect. */
const struct exti_file_id *exti__inspected_id(const struct exti_image *im);
/* The file's bytes as they were read, likewise. */
const struct exti_mapping *exti__inspected_mapping(const struct exti_image *im);
/* All bytes of the file, or none if that cannot be read any more.  `im` may be a slice, or made by
 * other means: then its bytes are whole.  Threads may call it at once. */
struct exti_span exti__inspected_whole(const struct exti_image *im);

#endif
