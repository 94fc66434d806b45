/* What search_pe.c asks the system that it runs on. */
#ifndef LOADER_RESOLVE_SEARCH_PE_PRIV_H
#define LOADER_RESOLVE_SEARCH_PE_PRIV_H

#include <stdbool.h>

#include "base/os/fs.h"

/* Windows' own folder of DLLs, System32; the usual one where Windows is not the host. */
void exti__pe_system_folder(char out[EXTI_PATH_MAX]);

/* Whether a DLL of that name is there. */
bool exti__pe_system_has(const char *name);

#endif
