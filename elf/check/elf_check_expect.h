/* The dynamic strings and symbol names that the copy must have. */
#ifndef ELF_CHECK_ELF_CHECK_EXPECT_H
#define ELF_CHECK_ELF_CHECK_EXPECT_H

#include "elf/check/elf_check_state.h"

/* Works out c->expect from c->before and c->opts; does nothing without opts. */
int exti__elf_expect(struct elf_check *c, struct exti_error *err);
void exti__elf_expect_free(struct elf_expect *e);
/* The new name of the symbol `name`: `name` itself when it is not renamed. */
const char *exti__elf_renamed(const struct elf_check *c, const char *name);
/* Whether a version table that named library `was` may now name `name`.  Needs opts. */
bool exti__elf_follows_needed(const struct elf_check *c, const char *was, const char *name);

#endif
