/* Numbers and bytes that a page shift changes in place. */
#ifndef MACHO_EDIT_MACHO_SHIFT_PLACE_H
#define MACHO_EDIT_MACHO_SHIFT_PLACE_H

#include "macho/edit/macho_build.h"

/* Adds `shift` to the 32 bits at `p`, which lie at offset `at` in the file. */
int exti__macho_shift_u32(uint8_t *p, uint64_t shift, uint64_t at, const char *what,
                          struct exti_error *err);
int exti__macho_shift_u64(uint8_t *p, uint64_t shift, const char *what, struct exti_error *err);

/* The `n` bytes of b->body that lie at `offset` in the slice; EXTI_E_FORMAT if the body lacks
 * any. */
int exti__macho_shift_body(struct macho_build *b, uint64_t offset, uint64_t n, const char *what,
                           uint8_t **out, struct exti_error *err);

/* Piece `kind`, for editing in place. */
int exti__macho_shift_piece(struct macho_build *b, enum macho_piece_kind kind,
                            struct exti_buf **out, struct exti_error *err);

#endif
