/* The dynamic section of a copy that is mapped. */
#ifndef LOADER_PROCESS_DYNAMIC_ELF_H
#define LOADER_PROCESS_DYNAMIC_ELF_H

#include <link.h>
#include <stdbool.h>

#include "loader/process/linkmap.h"

/* For what changes entries: threads of other contexts read the dynamic sections of all libraries at
 * any time, but look at no value that is changed here. */
#define EXTI_READ_MEANWHILE __attribute__((no_sanitize("thread")))

/* Calls `change` for each entry up to the first DT_NULL, and for that.  False if the system refuses
 * to make the section writable.  One thread at a time, while no slots of the library are
 * written. */
bool exti__dynamic_change(const struct exti_loaded *lib, const struct exti_layout *layout,
                          void (*change)(const struct exti_loaded *lib, ElfW(Dyn) * d));

#endif
