/* Writing the imports of LC_DYLD_CHAINED_FIXUPS. */
#ifndef MACHO_EDIT_MACHO_CHAINED_WRITE_H
#define MACHO_EDIT_MACHO_CHAINED_WRITE_H

#include "base/buf.h"
#include "macho/read/macho_chained.h"

/* Writes the payload with `ordinals[i]` for import i into `out`, which is empty.  The import table
 * keeps its format if the ordinals fit; otherwise it becomes DYLD_CHAINED_IMPORT_ADDEND64. */
int exti__macho_chained_set_ordinals(const struct macho_chained *c, const int32_t *ordinals,
                                     struct exti_buf *out, struct exti_error *err);

#endif
