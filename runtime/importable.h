/* The module `extisolate` for the processes that a context starts, in which it says that they are
 * the one context: a file, to which PYTHONPATH and sys.path of the context lead. */
#ifndef RUNTIME_IMPORTABLE_H
#define RUNTIME_IMPORTABLE_H

#include <extisolate.h>

struct pyrt_api;

/* Writes it into a new folder in `base`, a private directory, and gives the folder's path, for
 * free(). */
int pyrt_importable_write(char **folder, const char *base, struct exti_error *err);

/* Adds the folder to the ends of the context's PYTHONPATH and sys.path, unless the interpreter
 * finds a package `extisolate`, as then its children do.  The thread has the GIL.  -1: ^C has
 * interrupted it, and the exception is set. */
int pyrt_importable_offer(const struct pyrt_api *py, const char *folder);

#endif
