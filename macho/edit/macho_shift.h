/* The page shift's parts.  Each edits what stands in the build; b->body holds the slice from room_end
 * on, and b->commands the layout before the shift. */
#ifndef MACHO_EDIT_MACHO_SHIFT_H
#define MACHO_EDIT_MACHO_SHIFT_H

#include "macho/read/macho_priv.h"

/* macho_shift_check.c: EXTI_E_UNSUPPORTED for a file with anything in it that is not known to stand a
 * shift. */
int exti__macho_shift_check(const struct macho_build *b, struct exti_error *err);

/* macho_shift_fixups.c: the targets of rebases, and where chains start. */
int exti__macho_shift_fixups(struct macho_build *b, struct exti_error *err);

/* macho_shift_tables.c: what tells addresses in __LINKEDIT. */
int exti__macho_shift_exports(struct macho_build *b, struct exti_error *err);
int exti__macho_shift_symbols(struct macho_build *b, struct exti_error *err);
int exti__macho_shift_function_starts(struct macho_build *b, struct exti_error *err);
int exti__macho_shift_data_in_code(struct macho_build *b, struct exti_error *err);

/* macho_unwind.c: adds `shift` to every offset from the image's start in a __unwind_info section of
 * `n` bytes that stands at `base` in the file. */
int exti__macho_unwind_shift(uint8_t *p, size_t n, uint64_t base, uint64_t shift,
                             struct exti_error *err);

/* Adds `shift` to the 32 bits at `p`, which stand at offset `at` in the file. */
int exti__macho_shift_u32(uint8_t *p, uint64_t shift, uint64_t at, const char *what,
                          struct exti_error *err);

/* The `n` bytes of the body that stand at `offset` in the slice: EXTI_E_FORMAT if not all of them do. */
int exti__macho_shift_body(struct macho_build *b, uint64_t offset, uint64_t n, const char *what,
                           uint8_t **out, struct exti_error *err);

/* Piece `kind` for editing in place. */
int exti__macho_shift_piece(struct macho_build *b, enum macho_piece_kind kind,
                            struct exti_buf **out, struct exti_error *err);

#endif
