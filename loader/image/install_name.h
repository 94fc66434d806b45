/* Where dyld finds the libraries that a Mach-O file names.  Pure; any thread. */
#ifndef LOADER_IMAGE_INSTALL_NAME_H
#define LOADER_IMAGE_INSTALL_NAME_H

#include "base/format.h"

#define EXTI_LOADER_PATH "@loader_path/"
#define EXTI_EXECUTABLE_PATH "@executable_path/"
#define EXTI_RPATH "@rpath/"

/* The path that `name` stands for in the file `from`: an absolute path is itself, "@loader_path/"
 * is the folder of `from`.  *out is for exti__free; NULL for any other name, which only a process
 * can resolve. */
int exti__install_name_expand(const char *from, const char *name, char **out,
                              struct exti_error *err);

/* How many places dyld searches for `name`, a library that `im` needs: one, or for "@rpath/..." one
 * per LC_RPATH of `im`.  The LC_RPATHs of whatever loads `im` are not known here. */
size_t exti__install_name_tries(const struct exti_image *im, const char *name);

/* The path at the i-th of those places, as exti__install_name_expand gives it; `from` is the path
 * of the file that `im` describes. */
int exti__install_name_file(const char *from, const struct exti_image *im, const char *name,
                            size_t i, char **out, struct exti_error *err);

#endif
