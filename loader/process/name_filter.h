/* Many names at once: which of them can be those of global symbols of this process?  dlsym(3) takes
 * the lock of the system's loader for each, and writes a message for each that is none. */
#ifndef LOADER_PROCESS_NAME_FILTER_H
#define LOADER_PROCESS_NAME_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exti_filtered_name {
    const char *name;
    uint32_t hash;
    bool may; /* some library may define it; false: none does */
};

/* Sets `may` of each name by the libraries that the process has now, without those at whose
 * addresses `passes_over` is true: it is called with the loader's lock held. */
void exti__filter_names(struct exti_filtered_name *names, size_t count,
                        bool (*passes_over)(uintptr_t address));

#endif
