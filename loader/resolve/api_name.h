/* Names of the API library in ELF and Mach-O files.  Pure; any thread. */
#ifndef LOADER_RESOLVE_API_NAME_H
#define LOADER_RESOLVE_API_NAME_H

#include <stdbool.h>

/* Whether `name`, a needed library's, is a name of the API library: of its file `file`, or its
 * SONAME or install name `id`, which may be NULL.  Folders do not count.  For CPython,
 * libpython3.so is one too: the stable ABI's library, which only forwards to libpython. */
bool exti__is_api_name(const char *name, const char *file, const char *id);

#endif
