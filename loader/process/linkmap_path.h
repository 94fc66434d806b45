/* The paths of loaded libraries, as the system's loader knows them.  Any thread, as long as the
 * library stays loaded. */
#ifndef LOADER_PROCESS_LINKMAP_PATH_H
#define LOADER_PROCESS_LINKMAP_PATH_H

#include "loader/process/linkmap.h"

/* Its path, cut to `cap` bytes. */
void exti__loaded_path(const struct exti_loaded *lib, char *out, size_t cap);

/* Whether the library was loaded from the file `path`. */
bool exti__loaded_is_file(const struct exti_loaded *lib, const char *path);

/* Writes the path of the file mapped at the address into `out`; "" if there is none. */
void exti__address_file(uintptr_t address, char *out, size_t cap);

#endif
