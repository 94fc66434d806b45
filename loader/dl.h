/* The system's loader, as little of it as the library needs.  Error texts are taken at once, on the
 * thread that caused them.  Any thread. */
#ifndef LOADER_DL_H
#define LOADER_DL_H

#include <stdbool.h>

#include "loader/extisolate.h"

/* Opens with local visibility and binds every reference at once. */
int exti__dl_open(const char *path, void **handle, struct exti_error *err);
int exti__dl_close(void *handle, struct exti_error *err);
bool exti__dl_is_open(const char *path);

/* NULL when the symbol is not there (a symbol whose value is NULL counts as such). */
void *exti__dl_symbol(void *handle, const char *name);

/* What a reference from a newly loaded library would find before anything of its own. */
void *exti__dl_global(const char *name);

#endif
