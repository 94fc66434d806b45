/* Which files use the API library: those that import a name that it exports. */
#ifndef LOADER_RESOLVE_CLOSURE_API_H
#define LOADER_RESOLVE_CLOSURE_API_H

#include "loader/resolve/closure.h"

/* The names that the API library exports.  Zero-filled it has none. */
struct exti_api_exports {
    char *text;         /* owned; the names, one after the other */
    const char **names; /* owned, sorted; into `text` */
    size_t count;
};

/* Copies the names, as the bytes of the image are a mapped file's, which may change.  After an
 * error exti__api_exports_free is still due. */
int exti__api_exports_of(const struct exti_image *im, struct exti_api_exports *out,
                         struct exti_error *err);
void exti__api_exports_free(struct exti_api_exports *x);

/* Whether a slice of `im` imports one of these names, from the API library if it says from which;
 * `api` is the API library's node. */
bool exti__api_is_used_by(const struct exti_api_exports *x, const struct exti_closure_node *api,
                          const struct exti_search_ops *ops, const struct exti_image *im);

#endif
