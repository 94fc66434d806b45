/* What interpreters print, given to those that opened them. */
#ifndef BINDINGS_PYTHON_EXT_OUTPUT_H
#define BINDINGS_PYTHON_EXT_OUTPUT_H

#include "bindings/python/ext/core.h"

/* As of struct pkg_core.  The owner of streams is called with each line, and once they have ended.
 */
int pkg_output_open(uint64_t *id, const struct pkg_opening *how, struct exti_error *err);
int pkg_output_close(uint64_t id, int wait, struct pkg_report *report, struct extipy_closed *out,
                     struct exti_error *err);

#endif
