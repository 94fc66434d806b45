/* Editing LC_RPATH, and resolving @loader_path. */
#ifndef MACHO_EDIT_MACHO_PATHS_H
#define MACHO_EDIT_MACHO_PATHS_H

#include "macho/edit/macho_items.h"

int exti__macho_edit_paths(struct macho_edit *e, struct exti_error *err);

/* Replaces a leading @loader_path in *text by opts->origin, the original's folder, if that is
 * given. */
int exti__macho_translate(struct macho_edit *e, const char **text, struct exti_error *err);

#endif
