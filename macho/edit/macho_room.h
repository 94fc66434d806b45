/* Space for the load commands. */
#ifndef MACHO_EDIT_MACHO_ROOM_H
#define MACHO_EDIT_MACHO_ROOM_H

#include "macho/edit/macho_items.h"

/* Shortens or drops commands until they fit; if none of that suffices, sets e->b->shift. */
int exti__macho_make_room(struct macho_edit *e, struct exti_error *err);

#endif
