/* The exports of one file, for looking up imports: by name, or by ordinal as "#12".  Any thread. */
#ifndef LOADER_IMAGE_EXPORTS_H
#define LOADER_IMAGE_EXPORTS_H

#include "base/format.h"

struct exti_exports {
    const struct exti_image_symbol **by_name, **by_ordinal; /* owned, sorted */
    size_t count;
};

/* `im` must outlive `out`. */
int exti__exports_of(const struct exti_image *im, struct exti_exports *out, struct exti_error *err);
void exti__exports_free(struct exti_exports *x);
const struct exti_image_symbol *exti__exports_find(const struct exti_exports *x, const char *name);

/* Splits "LIBRARY.SYMBOL" into a library's name of at most EXTI_FILE_NAME_MAX bytes, in `library`,
 * and the symbol, which is returned; NULL if it is not of that form. */
const char *exti__forward_split(const char *forward, char *library);

/* Whether a symbol is exported by forwarding it to another library, whose name is then in
 * `library`. */
bool exti__is_forwarder(const struct exti_image_symbol *s, char *library);

#endif
