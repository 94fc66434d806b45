/* How this interpreter answers the calls of others. */
#ifndef BINDINGS_PYTHON_EXT_ANSWER_H
#define BINDINGS_PYTHON_EXT_ANSWER_H

#include "bindings/python/ext/core.h"

/* Both as pkg_answerer; with the GIL. */
int pkg_answer(void *call, struct exti_error *err);
/* The same of the main interpreter, on a thread without its GIL. */
int pkg_answer_in_main(void *call, struct exti_error *err);

#endif
