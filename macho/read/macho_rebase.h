/* LC_DYLD_INFO's rebase opcodes. */
#ifndef MACHO_READ_MACHO_REBASE_H
#define MACHO_READ_MACHO_REBASE_H

#include "macho/read/macho_file.h"

/* Runs the rebase opcodes as dyld does and calls `each` for every slot, with its segment, its
 * offset in the segment, and REBASE_TYPE_*. */
int exti__macho_rebases(const struct macho_file *f,
                        int (*each)(void *user, uint32_t segment, uint64_t offset, uint8_t type,
                                    struct exti_error *err),
                        void *user, struct exti_error *err);

#endif
