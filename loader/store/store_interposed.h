/* Symbols that the process would capture from a copy. */
#ifndef LOADER_STORE_STORE_INTERPOSED_H
#define LOADER_STORE_STORE_INTERPOSED_H

#include "base/format.h"
#include "loader/store/store.h"

/* Symbols that do not count. */
struct exti_uncounted {
    uint32_t flags;                  /* those that have one of EXTI_SYM_* */
    bool (*named)(const char *name); /* those of these names; NULL: none */
};

/* Whether a global symbol of this process would capture one that the file defines for itself, and
 * that counts.  Asks the system's loader, whose initialisers ask us, so the mutex
 * must not be held.  EXTI_E_NOMEM. */
int exti__store_is_interposed(const struct exti_store *s, const struct exti_image *im,
                              struct exti_uncounted uncounted, bool *out, struct exti_error *err);

/* Notes that the process interposes symbols of the file, so that other contexts need not find it
 * out, and make their copies twice. */
void exti__store_note_interposed(const char *source);

/* Whether that was noted, and copies are for this process. */
bool exti__store_noted_interposed(const struct exti_store *s, const char *source);

#endif
