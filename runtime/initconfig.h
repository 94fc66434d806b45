/* The options that CPython is initialised with, by the names of PyConfig's members.  From 3.14 on
 * they go through PyInitConfig (PEP 741), where each version looks the names up itself; before,
 * into a PyConfig whose layout is known here.  In both, what is not set is what the stock program
 * has.  Texts are in the locale's encoding, as paths and command lines are. */
#ifndef RUNTIME_INITCONFIG_H
#define RUNTIME_INITCONFIG_H

#include "runtime/pyapi.h"

struct pyrt_initconfig;

/* Call it after Py_PreInitialize.  `py` and `version`, for messages, outlive the configuration. */
int pyrt_initconfig_new(struct pyrt_initconfig **out, const struct pyrt_api *py,
                        const char *version, struct exti_error *err);

/* Lists stay valid until the start.  A name that this version does not have is EXTI_E_ARG. */
int pyrt_initconfig_set(struct pyrt_initconfig *c, const struct pyrt_setting *s,
                        struct exti_error *err);

/* Initialises CPython on the calling thread.  On failure the error has CPython's own message. */
int pyrt_initconfig_start(struct pyrt_initconfig *c, struct exti_error *err);

void pyrt_initconfig_free(struct pyrt_initconfig *c); /* NULL ok */

#endif
