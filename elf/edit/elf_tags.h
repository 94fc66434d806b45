/* The dynamic entries of the new file as a list, and the texts made for them. */
#ifndef ELF_EDIT_ELF_TAGS_H
#define ELF_EDIT_ELF_TAGS_H

#include "elf/edit/elf_edit.h"

/* The last entry with that tag, which is the one that loaders obey, or NULL. */
struct elf_tag *exti__elf_find_tag(struct elf_edit *e, int64_t tag);
/* Appends an entry.  `text` (NULL: none) must outlive the edit. */
int exti__elf_add_tag(struct elf_edit *e, int64_t tag, uint64_t value, const char *text,
                      struct exti_error *err);
/* Removes all entries with that tag. */
void exti__elf_drop_tags(struct elf_edit *e, int64_t tag);
/* Gives an entry its new text, which must outlive the edit. */
int exti__elf_set_text(struct elf_edit *e, struct elf_tag *t, const char *text,
                       struct exti_error *err);
/* Hands `text`, from exti__alloc, to the edit, which frees it even on failure; NULL is
 * EXTI_E_NOMEM. */
int exti__elf_own_text(struct elf_edit *e, char *text, struct exti_error *err);

#endif
