/* LC_DYLD_INFO's opcode streams. */
#ifndef MACHO_CHECK_MACHO_CHECK_BIND_H
#define MACHO_CHECK_MACHO_CHECK_BIND_H

#include "macho/check/macho_check_state.h"

enum macho_stream { MACHO_STREAM_REBASE, MACHO_STREAM_BIND, MACHO_STREAM_LAZY, MACHO_STREAM_WEAK };

/* A place that dyld writes to. */
struct macho_slot {
    uint64_t at;        /* from the image's start */
    const char *symbol; /* NULL: a rebase */
    int64_t addend;
    int32_t ordinal;
    uint32_t opcode; /* offset in its stream of the last segment opcode */
    uint32_t order;  /* in which dyld writes */
    uint8_t stream, type, flags;
};
struct macho_slots {
    struct macho_slot *v;
    size_t n, cap;
};

/* Runs an opcode stream as dyld does and appends the places that it writes to.  Reports breaches of
 * dyld's rules and skips the rest of the stream then. */
int exti__macho_slots(struct macho_check *c, const struct macho_file *f, enum macho_stream stream,
                      struct macho_slots *out, struct exti_error *err);

/* Appends the places that the eager and lazy streams write to, and sorts all. */
int exti__macho_bound_slots(struct macho_check *c, const struct macho_file *f,
                            struct macho_slots *out, struct exti_error *err);

int exti__macho_slot_add(struct macho_slots *list, struct macho_slot s, struct exti_error *err);

/* Sorts by address, then in dyld's order. */
void exti__macho_slots_sort(struct macho_slots *list);

/* The last slot at that address in a sorted list, or NULL. */
const struct macho_slot *exti__macho_slot_find(const struct macho_slots *list, uint64_t at);

void exti__macho_slots_free(struct macho_slots *list);

int exti__macho_rule_opcodes(struct macho_check *c, const struct macho_file *f,
                             struct exti_error *err);

#endif
