/* The tables of __LINKEDIT, called pieces. */
#ifndef MACHO_READ_MACHO_PIECES_H
#define MACHO_READ_MACHO_PIECES_H

#include "macho/read/macho_file.h"

/* "bind opcodes", "symbol table", ...; static. */
const char *exti__macho_piece_name(enum macho_piece_kind kind);

/* For exti__macho_open: notes the pieces that the command at index `i` locates, if any. */
int exti__macho_read_pieces(struct macho_file *f, size_t i, struct exti_error *err);

/* For exti__macho_open: locates all pieces and checks them against each other. */
int exti__macho_check_pieces(struct macho_file *f, struct exti_error *err);

#endif
