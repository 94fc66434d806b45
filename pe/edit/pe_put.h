/* Overwrites bytes of the copy, in the headers or elsewhere.  `at` is the file offset in the
 * original; `what` names the structure in messages. */
#ifndef PE_EDIT_PE_PUT_H
#define PE_EDIT_PE_PUT_H

#include <stddef.h>
#include <stdint.h>

#include "pe/edit/pe_edit.h"

int exti__pe_put(struct pe_edit *e, uint64_t at, const void *p, size_t n, const char *what,
                 struct exti_error *err);
int exti__pe_put_u16(struct pe_edit *e, uint64_t at, uint16_t v, const char *what,
                     struct exti_error *err);
int exti__pe_put_u32(struct pe_edit *e, uint64_t at, uint32_t v, const char *what,
                     struct exti_error *err);
int exti__pe_put_zeros(struct pe_edit *e, uint64_t at, uint64_t n, const char *what,
                       struct exti_error *err);
/* Reads 4 little-endian bytes. */
uint32_t exti__pe_u32(const uint8_t *p);
/* File offset of a string that was read from `f`. */
uint64_t exti__pe_offset(const struct pe_file *f, const void *p);

#endif
