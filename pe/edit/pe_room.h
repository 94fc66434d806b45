/* Makes room at the end of the file: a new section, or a longer last one. */
#ifndef PE_EDIT_PE_ROOM_H
#define PE_EDIT_PE_ROOM_H

#include "pe/edit/pe_edit.h"

/* Sets e->blob_rva, e->blob_offset and e->added.  EXTI_E_NOSPACE if neither is possible. */
int exti__pe_append(struct pe_edit *e, struct exti_error *err);

#endif
