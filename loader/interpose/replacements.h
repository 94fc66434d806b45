/* The functions that copies call in place of the system's, by symbol. */
#ifndef LOADER_INTERPOSE_REPLACEMENTS_H
#define LOADER_INTERPOSE_REPLACEMENTS_H

struct exti_ctx;

#ifndef _WIN32

/* What a reference of the context's copies to `symbol` is bound to, or NULL to leave it as it
 * is. */
void *exti__replacement(struct exti_ctx *ctx, const char *symbol);

#endif
#endif
