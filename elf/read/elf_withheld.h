/* Constructors that the system's loader is not to run: a copy keeps them under tags that no loader
 * knows, and whoever opens the copy runs them.  The tags are DT_INIT and DT_INIT_ARRAY in the range
 * that the gABI leaves to systems (DT_LOOS to DT_HIOS).  DT_INIT_ARRAYSZ stays: without
 * DT_INIT_ARRAY no loader reads it (glibc elf/dl-init.c, musl ldso/dynlink.c). */
#ifndef ELF_READ_ELF_WITHHELD_H
#define ELF_READ_ELF_WITHHELD_H

#include <elf.h>
#include <stdint.h>

#define EXTI_DT_INIT (0x65787400 | DT_INIT)
#define EXTI_DT_INIT_ARRAY (0x65787400 | DT_INIT_ARRAY)

/* The tag under which a copy withholds an entry; any other tag as it is. */
static inline int64_t exti__elf_withheld_tag(int64_t tag)
{
    return tag == DT_INIT ? EXTI_DT_INIT : tag == DT_INIT_ARRAY ? EXTI_DT_INIT_ARRAY : tag;
}

#endif
