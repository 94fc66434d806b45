/* From addresses in memory (RVAs) to bytes of the file. */
#ifndef PE_READ_PE_ADDRESS_H
#define PE_READ_PE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pe/read/pe_file.h"

/* The file's bytes for `len` bytes at `rva`, all within one section's raw data (or the headers). */
int exti__pe_at(const struct pe_file *f, uint32_t rva, uint64_t len, const char *what,
                struct exti_span *out, struct exti_error *err);
/* The same from `rva` to the end of what its section has in the file. */
int exti__pe_from(const struct pe_file *f, uint32_t rva, const char *what, struct exti_span *out,
                  struct exti_error *err);
/* A NUL-terminated string of at most `most` bytes at `rva`. */
int exti__pe_string(const struct pe_file *f, uint32_t rva, size_t most, const char *what,
                    const char **out, struct exti_error *err);
/* Where an address led nowhere, the fault lies in the field at `at` that holds it.  Returns `rc`. */
int exti__pe_error_at(int rc, uint64_t at, struct exti_error *err);
/* The section that `rva` lies in, up to the start of the next, or NULL. */
const struct pe_section *exti__pe_section_of(const struct pe_file *f, uint32_t rva);

#endif
