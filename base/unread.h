/* The parts of a file that are not read: code, data, relocations that name no symbol.  They are
 * most of a large library, and no reader of a format looks at them and no edit changes them. */
#ifndef BASE_UNREAD_H
#define BASE_UNREAD_H

#include <stdbool.h>

#include "base/span.h"

/* Bytes of a file. */
struct exti_range {
    size_t at, n;
};

/* Enough for a library with its debug sections. */
#define EXTI_UNREAD_MAX 24

/* Ordered by offset; they do not overlap. */
struct exti_unread {
    struct exti_range part[EXTI_UNREAD_MAX];
    size_t count;
};

#define EXTI_UNREAD_TABLES 2

/* How a format tells its unread parts before the file is read. */
struct exti_unread_ops {
    /* Gives where the tables lie that tell the rest, for a file of `size` bytes that starts with
     * `head`.  Returns how many there are; 0 if the whole file is to be read. */
    size_t (*tables)(struct exti_span head, uint64_t size,
                     struct exti_range out[EXTI_UNREAD_TABLES]);
    /* Gives the unread parts.  Of `table` those that `tables` gave have bytes. */
    void (*parts)(struct exti_span head, const struct exti_span table[EXTI_UNREAD_TABLES],
                  uint64_t size, struct exti_unread *out);
};

/* The bytes of the head; a file that is not longer is read whole. */
#define EXTI_UNREAD_HEAD ((size_t)4096)

#endif
