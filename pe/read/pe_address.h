/* Finds the bytes of the file behind an address in memory (RVA).  `what` names the structure in
 * messages.  Failures are EXTI_E_FORMAT; their offset is unknown if the address leads nowhere. */
#ifndef PE_READ_PE_ADDRESS_H
#define PE_READ_PE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pe/read/pe_file.h"

/* `len` bytes at `rva`, all within one section's raw data or the headers. */
int exti__pe_at(const struct pe_file *f, uint32_t rva, uint64_t len, const char *what,
                struct exti_span *out, struct exti_error *err);
/* All bytes from `rva` to the end of its section's raw data. */
int exti__pe_from(const struct pe_file *f, uint32_t rva, const char *what, struct exti_span *out,
                  struct exti_error *err);
/* The NUL-terminated string of at most `most` bytes at `rva`. */
int exti__pe_string(const struct pe_file *f, uint32_t rva, size_t most, const char *what,
                    const char **out, struct exti_error *err);
/* Blames an address that leads nowhere on the field at file offset `at` that holds it: sets the
 * error's offset if it has none.  Returns `rc`. */
int exti__pe_error_at(int rc, uint64_t at, struct exti_error *err);
/* The section that contains `rva`, or NULL.  A section reaches to the start of the next. */
const struct pe_section *exti__pe_section_of(const struct pe_file *f, uint32_t rva);

#endif
