/* One copy as a pattern of others: what it has beyond its source, and where the name of its context
 * is in that.  A pattern can be read by any thread once it is made. */
#ifndef LOADER_STORE_PATTERN_H
#define LOADER_STORE_PATTERN_H

#include <stdbool.h>

#include "loader/rewrite/rewrite.h"
#include "loader/store/manifest.h"

struct exti_pattern {
    uint64_t number;              /* no other has had it; 0: not proven */
    char name[EXTI_NAME_MAX + 1]; /* the context's */
    struct exti_entry e;
    size_t kept, size;          /* as struct exti_fs_clone has them */
    struct exti_range *changed; /* owned; ordered, below `kept` */
    size_t changed_count;
    uint8_t *bytes; /* owned: of these ranges, then from `kept` to `size` */
    size_t byte_count;
    /* Of an id that ends with the first `id_part` bytes of the context's name: how long it is, and
     * where in `bytes` it has them.  0: the id has the name as a whole, or nothing of it. */
    size_t id_length, id_part, id_at;
};

/* Keeps what `copy` has beyond its source.  `id`: its own, the copy's name or how that begins.
 * False without memory, and if the id is another or not where an edit is: then *out is empty. */
bool exti__pattern_take(const char *name, const char *id, const struct exti_entry *e,
                        const struct exti_rewritten *copy, struct exti_pattern *out);
void exti__pattern_free(struct exti_pattern *p);

/* Whether the names of the contexts differ, and so do what of them is in the copies' ids: else two
 * copies do not tell where other contexts have theirs. */
bool exti__pattern_differs(const struct exti_pattern *p, const struct exti_pattern *other);

/* Whether both are the same but for the names of their contexts, which are of one length.  False
 * without memory too. */
bool exti__pattern_matches(const struct exti_pattern *p, const struct exti_pattern *other);

/* The entry and the bytes of the copy in the context `name`, whose length is that of the pattern's;
 * exti__entry_clear and exti__free them.  False without memory, and where the id would be cut off
 * at another place. */
bool exti__pattern_entry(const struct exti_pattern *p, const char *name, struct exti_entry *out);
uint8_t *exti__pattern_bytes(const struct exti_pattern *p, const char *name);

#endif
