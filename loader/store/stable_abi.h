/* The stable ABI's library, python3.dll, which only forwards to the API library: of each export the name
 * of libpython's.  What imports it is bound to libpython itself where that comes to the same; else the
 * context has a copy of python3.dll, too. */
#ifndef LOADER_STORE_STABLE_ABI_H
#define LOADER_STORE_STABLE_ABI_H

#include "base/format.h"
#include "loader/store/manifest.h"

/* Whether a library's name is that of the stable ABI's library that goes with `m`'s API library. */
bool exti__stable_abi_is(const struct exti_manifest *m, const char *name);

/* The context's copy of it, or NULL. */
const struct exti_entry *exti__stable_abi_entry(const struct exti_manifest *m);

/* The first symbol for which a file needs that copy: one that it imports by ordinal, or under a name that
 * the API library does not have.  NULL: it needs none. */
int exti__stable_abi_wanted(const struct exti_manifest *m, const struct exti_image *im,
                            const char **symbol, struct exti_error *err);

/* What the copy is to be made from: what it was made from before, or the one beside the API library.
 * exti__free it.  `symbol` is what it is needed for. */
int exti__stable_abi_source(const struct exti_manifest *m, const char *symbol, char **out,
                            struct exti_error *err);

/* That `im`, the stable ABI's library, forwards to the API library and to no other version's. */
int exti__stable_abi_check(const struct exti_manifest *m, const struct exti_image *im,
                           struct exti_error *err);

/* That the context's copy leads each symbol that `im` imports from it to one of the API library. */
int exti__stable_abi_check_user(const struct exti_manifest *m, const struct exti_image *im,
                                struct exti_error *err);

#endif
