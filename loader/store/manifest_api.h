/* Which names and files are the API's in a context.
 *
 * On Windows CPython has two: python3XX.dll, the API library, and python3.dll, the stable ABI's
 * library, which only forwards to it.  See stable_abi.h. */
#ifndef LOADER_STORE_MANIFEST_API_H
#define LOADER_STORE_MANIFEST_API_H

#include <stdbool.h>

#include "loader/store/manifest.h"

/* Whether a needed library's name is one of the API library's: its SONAME or install name, its
 * file's name, or, for CPython, libpython3.so or python3.dll, which only forward to it. */
bool exti__manifest_is_api(const struct exti_manifest *m, const char *name);

/* Whether a library's name is that of the stable ABI's library that goes with the API library. */
bool exti__manifest_is_stable_abi(const struct exti_manifest *m, const char *name);

/* The entry of the context's copy of that library, or NULL. */
const struct exti_entry *exti__manifest_stable_abi(const struct exti_manifest *m);

#endif
