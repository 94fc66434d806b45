/* Re-points references of a module that has been loaded, by writing the slots that hold them. */
#ifndef LOADER_LOAD_PATCH_SLOTS_H
#define LOADER_LOAD_PATCH_SLOTS_H

#include "loader/track/module.h"

/* Binds the module's references to what the context's options redirect them to, else to what a
 * quirk does, else to what the context interposes.  m->ctx->lock is held. */
int exti__patch_references(struct exti_module *m, struct exti_error *err);

/* A slot of a module, and the address that it is to hold. */
struct exti_slot {
    uintptr_t *at, value;
};

/* Writes them.  m->ctx->lock is held: of two threads that have opened one file at once, one would
 * make its table read-only while the other still writes. */
int exti__write_slots(const struct exti_module *m, const struct exti_slot *slots, size_t count,
                      struct exti_error *err);

#endif
