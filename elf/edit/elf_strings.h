/* The new string table. */
#ifndef ELF_EDIT_ELF_STRINGS_H
#define ELF_EDIT_ELF_STRINGS_H

#include "base/buf.h"
#include "elf/read/elf_file.h"

/* The old table, some bytes of it overwritten, and the text added behind it. */
struct elf_strings {
    const struct elf_file *f;
    uint8_t *bytes; /* owned: DT_STRSZ bytes */
    uint8_t *state; /* owned: per byte free, kept by an unchanged string or claimed by a new one */
    struct exti_buf added;
    uint32_t *slots; /* owned hash set: offsets into `added`, plus 1 */
    size_t slot_count, used;
};

int exti__elf_strings_init(struct elf_strings *s, const struct elf_file *f, struct exti_error *err);
void exti__elf_strings_free(struct elf_strings *s);

/* Keeps the string at offset `off`, because a reference to it does not change.  `what` names that
 * reference in errors. */
int exti__elf_strings_keep(struct elf_strings *s, uint64_t off, const char *what,
                           struct exti_error *err);

/* Places `text` and gives its offset.  It overwrites the string at `old` (EXTI_NO_OFFSET: there is
 * none) if every other reference to these bytes allows that.  Otherwise, with `search`, an equal
 * string in the old bytes serves.  Otherwise the text goes behind the table.  All unchanged
 * references must have been kept before. */
int exti__elf_strings_put(struct elf_strings *s, uint64_t old, const char *text, bool search,
                          uint64_t *off, struct exti_error *err);

#endif
