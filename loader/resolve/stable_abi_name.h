/* Names of python3.dll, the library of CPython's stable ABI on Windows, which only forwards to the
 * API library python3XX.dll.  Pure; any thread. */
#ifndef LOADER_RESOLVE_STABLE_ABI_NAME_H
#define LOADER_RESOLVE_STABLE_ABI_NAME_H

#include <stdbool.h>

/* The name of that library as a constant if `name` is one, in any spelling; else NULL. */
const char *exti__stable_abi_name(const char *name);

/* What the build of the API library calls it: "python3_d.dll" for "python311_d.dll".  `api` is the
 * API library's file, `id` its own name or NULL.  NULL where the API library is not Python's. */
const char *exti__stable_abi_name_for(const char *api, const char *id);

/* Whether `name`, without a folder, is `own`, exti__stable_abi_name_for's answer, or python3.dll,
 * which files of any build may name. */
bool exti__is_stable_abi_name(const char *name, const char *own);

#endif
