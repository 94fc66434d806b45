/* python3.dll, the library of CPython's stable ABI on Windows.  It has no code: each of its
 * exports forwards to one of the API library, python3XX.dll.
 *
 * A copy whose original imports from python3.dll imports from the API copy itself where that
 * comes to the same.  Otherwise (by ordinal, or under a name that the API library lacks) the
 * context gets a copy of python3.dll too. */
#ifndef LOADER_STORE_STABLE_ABI_H
#define LOADER_STORE_STABLE_ABI_H

#include "base/format.h"
#include "loader/store/manifest.h"

/* Sets *symbol to the first symbol for which a file needs that copy: imported by ordinal, or
 * under a name that the API library does not export.  NULL: it needs none.  The string is the
 * image's. */
int exti__stable_abi_wanted(const struct exti_manifest *m, const struct exti_image *im,
                            const char **symbol, struct exti_error *err);

/* The file to copy, for exti__free: the source of the context's copy, if it has one, else the
 * python3.dll beside the API library.  `symbol`, which some file imports from it, is for
 * messages. */
int exti__stable_abi_source(const struct exti_manifest *m, const char *symbol, char **out,
                            struct exti_error *err);

/* EXTI_E_UNSUPPORTED unless `im`, the stable ABI's library, forwards to this API library. */
int exti__stable_abi_check(const struct exti_manifest *m, const struct exti_image *im,
                           struct exti_error *err);

/* EXTI_E_UNSUPPORTED unless the context's copy forwards each symbol that `im` imports from it to
 * one that the API library exports. */
int exti__stable_abi_check_user(const struct exti_manifest *m, const struct exti_image *im,
                                struct exti_error *err);

#endif
