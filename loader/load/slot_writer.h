/* Writes slots of a loaded module, read-only ones too. */
#ifndef LOADER_LOAD_SLOT_WRITER_H
#define LOADER_LOAD_SLOT_WRITER_H

#include "loader/track/module.h"

/* Zeroed but for `m`. */
struct exti_slot_writer {
    const struct exti_module *m;
    bool unprotected; /* POSIX: the module's read-only part is writable now */
    uint32_t code;    /* the system's error, or 0 */
};

/* m->ctx->lock is held from the first slot to the end.  False, for good, once the system
 * refuses. */
bool exti__slot_write(struct exti_slot_writer *w, uintptr_t *slot, uintptr_t value);

/* Protects the module again.  Fails with `what`, a message, if some slot could not be written. */
int exti__slots_end(struct exti_slot_writer *w, const char *what, struct exti_error *err);

#endif
