/* The page shift. */
#ifndef MACHO_EDIT_MACHO_SHIFT_H
#define MACHO_EDIT_MACHO_SHIFT_H

#include "macho/edit/macho_build.h"

/* Moves everything after the header by b->shift: edits b->commands, the pieces and b->body.
 * EXTI_E_UNSUPPORTED, naming the command, section or fixup format, for what it cannot move. */
int exti__macho_shift(struct macho_build *b, struct exti_error *err);

/* Appends the bytes at offset `shift` of the copy: a second header with the load commands, as of
 * an image that starts there, padded to f->room_end bytes.  Code that takes the address of its own
 * Mach-O header gets this one.  b->commands must be final, except for the signature's bytes. */
int exti__macho_second_header(const struct macho_build *b, struct exti_buf *out,
                              struct exti_error *err);

#endif
