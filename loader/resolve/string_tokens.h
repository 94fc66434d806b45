/* ld.so's dynamic string tokens, ld.so(8).  Any thread. */
#ifndef LOADER_RESOLVE_STRING_TOKENS_H
#define LOADER_RESOLVE_STRING_TOKENS_H

#include "loader/resolve/search.h"

/* `text` with $ORIGIN, $LIB and $PLATFORM, each also in braces, replaced; exti__free it.  $ORIGIN
 * is the folder of `path`.  *out is NULL where `text` has a token whose value is not known. */
int exti__expand_tokens(const struct exti_search *s, const char *path, const char *text, char **out,
                        struct exti_error *err);

#endif
