/* Remembers where look-ups in the cache and the default folders led, as most files of a tree need
 * the same few libraries.  Any thread. */
#ifndef LOADER_RESOLVE_DEFAULT_MEMO_H
#define LOADER_RESOLVE_DEFAULT_MEMO_H

#include "loader/resolve/search.h"

struct exti_default_memo;

/* One look-up. */
struct exti_default_query {
    const char *name;
    struct exti_elf_kind kind;
    bool no_default; /* DF_1_NODEFLIB */
};

int exti__default_memo_open(struct exti_default_memo **out, struct exti_error *err);
void exti__default_memo_close(struct exti_default_memo *memo); /* NULL ok */

/* The path found for that query before, for exti__free; NULL if there is none, or the file has gone
 * since. */
char *exti__default_memo_get(struct exti_default_memo *memo, const struct exti_default_query *q);

/* Without memory for it, the next look-up searches again. */
void exti__default_memo_put(struct exti_default_memo *memo, const struct exti_default_query *q,
                            const char *path);

#endif
