/* Releasing and closing modules. */
#ifndef LOADER_LOAD_UNLOAD_H
#define LOADER_LOAD_UNLOAD_H

#include "loader/track/module.h"

/* Closes the modules of `list`, which are on no context's list any more, and frees them: each
 * before the modules that it needs.  Their references to those are not given back.  Tells the
 * before_close hook.  With `keep_mapped` the system's handles stay open.  Returns the first error
 * and goes on. */
int exti__modules_dispose(struct exti_module *list, bool keep_mapped, struct exti_error *err);

/* The same for modules that have left the address map too, without the hook. */
int exti__modules_unload(struct exti_module *list, bool keep_mapped, struct exti_error *err);

/* Gives back one reference.  If it was the last, moves the module, and those that only it needed,
 * from the context's list to *end, the end of a list for exti__modules_dispose: they go together,
 * as the finalisers of any may call the others.  Returns the new end. */
struct exti_module **exti__module_release(struct exti_module *m, struct exti_module **end);

/* exti_close, after its argument checks. */
int exti__close(struct exti_module *m, struct exti_error *err);

#endif
