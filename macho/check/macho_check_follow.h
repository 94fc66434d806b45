/* Which library a reference of the copy must be bound to. */
#ifndef MACHO_CHECK_MACHO_CHECK_FOLLOW_H
#define MACHO_CHECK_MACHO_CHECK_FOLLOW_H

#include "macho/check/macho_check_state.h"

/* Whether a reference to `symbol` that has ordinal `was` in the original may have `now` in the
 * copy. */
int exti__macho_follows(struct macho_check *c, const char *symbol, int32_t was, int32_t now,
                        bool *ok, struct exti_error *err);

/* Whether a weak look-up of a symbol is replaced by a binding to one library. */
enum macho_weak_fate { MACHO_WEAK_STAYS, MACHO_WEAK_MAY_GO, MACHO_WEAK_MUST_GO };

/* *target is the library's ordinal in the copy or BIND_SPECIAL_DYLIB_SELF: to be compared by
 * exti__macho_is_weak_target, as without a request any library with a new name will do. */
int exti__macho_weak_target(struct macho_check *c, const char *symbol, enum macho_weak_fate *fate,
                            int32_t *target, struct exti_error *err);
bool exti__macho_is_weak_target(const struct macho_check *c, int32_t target, int32_t now);

/* Frees what the questions above have computed. */
void exti__macho_follow_free(struct macho_check *c);

#endif
