/* Planning universal files. */
#ifndef MACHO_EDIT_MACHO_UNIVERSAL_H
#define MACHO_EDIT_MACHO_UNIVERSAL_H

#include "base/format.h"
#include "macho/read/macho_fat.h"

/* `bind` is scratch space for req->bind_count slices. */
int exti__macho_plan_universal(struct exti_span file, const struct macho_fat *fat,
                               const struct exti_request *req, struct exti_span *bind,
                               struct exti_plan *plan, struct exti_error *err);

#endif
