/* Redirects that quirks ask for. */
#ifndef LOADER_LOAD_QUIRK_REDIRECTS_H
#define LOADER_LOAD_QUIRK_REDIRECTS_H

#include "loader/track/module.h"

/* Finds the functions that quirks redirect references of this module to: m->redirects. */
int exti__module_quirk_redirects(struct exti_module *m, struct exti_error *err);

#endif
