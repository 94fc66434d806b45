/* Finds copies whose symbols the process would capture, before they are opened. */
#ifndef LOADER_LOAD_INTERPOSED_H
#define LOADER_LOAD_INTERPOSED_H

#include "loader/track/context.h"

/* Binds the copy of `source`, which is not open yet, to its own symbols if the process would
 * capture one of them.  Weak symbols do not count: C++ uses them for what copies that are loaded
 * together share.  ELF only: elsewhere nothing is captured.  Asks the system's loader: no lock of
 * the library is held. */
int exti__interposed_make_symbolic(struct exti_ctx *ctx, const char *source,
                                   struct exti_error *err);

#endif
