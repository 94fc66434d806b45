/* Writing LEB128 numbers. */
#ifndef MACHO_EDIT_MACHO_PUT_LEB_H
#define MACHO_EDIT_MACHO_PUT_LEB_H

#include "base/buf.h"

int exti__macho_put_uleb(struct exti_buf *b, uint64_t v, struct exti_error *err);
int exti__macho_put_sleb(struct exti_buf *b, int64_t v, struct exti_error *err);

#endif
