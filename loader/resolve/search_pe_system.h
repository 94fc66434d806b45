/* Windows' folder of DLLs, looked into where Windows is the host and listed elsewhere.  Any
 * thread. */
#ifndef LOADER_RESOLVE_SEARCH_PE_SYSTEM_H
#define LOADER_RESOLVE_SEARCH_PE_SYSTEM_H

#include <stdbool.h>

#include "base/path.h"

/* The path of System32; the usual one where Windows is not the host. */
void exti__pe_system_folder(char out[EXTI_PATH_MAX]);

/* Whether System32 holds a DLL of that name. */
bool exti__pe_system_has(const char *name);

#endif
