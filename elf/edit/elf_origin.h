/* $ORIGIN in library names and search paths. */
#ifndef ELF_EDIT_ELF_ORIGIN_H
#define ELF_EDIT_ELF_ORIGIN_H

#include "elf/edit/elf_edit.h"

/* The length of the $ORIGIN or ${ORIGIN} at `p`, or 0. */
size_t exti__elf_origin_token(const char *p);
/* Replaces each $ORIGIN in *text by the directory that it stood for, opts->origin.  *text changes
 * only if it has a $ORIGIN; the edit owns the new text. */
int exti__elf_translate(struct elf_edit *e, const char **text, struct exti_error *err);

#endif
