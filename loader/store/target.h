/* Format and machine of a file, which all copies of a context have in common. */
#ifndef LOADER_STORE_TARGET_H
#define LOADER_STORE_TARGET_H

#include "base/format.h"
#include "loader/store/manifest.h"

struct exti_target exti__target_of(const struct exti_image *im);

/* EXTI_E_UNSUPPORTED unless the file can be loaded with the API library, whose target is
 * `wanted`. */
int exti__target_check(const struct exti_target *wanted, const struct exti_image *im,
                       struct exti_error *err);

#endif
