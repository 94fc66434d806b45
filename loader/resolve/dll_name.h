/* Names of DLLs as Windows compares them.  Pure; any thread. */
#ifndef LOADER_RESOLVE_DLL_NAME_H
#define LOADER_RESOLVE_DLL_NAME_H

#include <stdbool.h>

/* Whether Windows takes two names for the same DLL: case does not count, ".dll" may be left out. */
bool exti__same_dll(const char *a, const char *b);

#endif
