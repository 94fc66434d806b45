/* Editing the load commands. */
#ifndef MACHO_EDIT_MACHO_COMMANDS_H
#define MACHO_EDIT_MACHO_COMMANDS_H

#include "macho/edit/macho_build.h"

/* Applies the id, library and search path edits, makes the result fit before f->room_end or sets
 * b->shift, and fills b->commands.  With a shift, the commands have the layout before it. */
int exti__macho_edit_commands(struct macho_build *b, struct exti_error *err);

#endif
