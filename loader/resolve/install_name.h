/* Where dyld finds the libraries that a Mach-O file names. */
#ifndef LOADER_RESOLVE_INSTALL_NAME_H
#define LOADER_RESOLVE_INSTALL_NAME_H

#include "base/format.h"

/* At how many places dyld looks for `name`, which the library that `im` describes needs: one, or for
 * "@rpath/..." as many as that has LC_RPATHs.  Those of whoever loads it are not known here. */
size_t exti__install_name_tries(const struct exti_image *im, const char *name);

/* The i-th of them, a path for exti__free: "@loader_path/" is the folder of the library, whose path is
 * `from`.  *out is NULL for a name that only a process can tell ("@executable_path/"). */
int exti__install_name_file(const char *from, const struct exti_image *im, const char *name,
                            size_t i, char **out, struct exti_error *err);

#endif
