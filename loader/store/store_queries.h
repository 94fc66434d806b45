/* What loading asks of a context directory, so that nothing outside loader/store/ reads the
 * manifest.  Returned strings live as long as the store unless a contract says otherwise.  Any
 * thread. */
#ifndef LOADER_STORE_STORE_QUERIES_H
#define LOADER_STORE_STORE_QUERIES_H

#include <stdbool.h>

#include "base/format.h"

struct exti_store;

const char *exti__store_dir(const struct exti_store *s); /* absolute */
const char *exti__store_context_name(const struct exti_store *s);

/* The file format of the API library, and so of every copy. */
enum exti_file_format exti__store_format(const struct exti_store *s);

/* Whether the API library's symbols have private names in this context. */
bool exti__store_is_renamed(const struct exti_store *s);

/* Whether the context copies no needed library but the API library (--closure=none). */
bool exti__store_shares_all(const struct exti_store *s);

/* Whether `name`, as a file needs or opens it, means the API library: by its SONAME, its file name
 * or a name of the stable ABI's library. */
bool exti__store_is_api_name(const struct exti_store *s, const char *name);

/* Whether the last part of `path` is the file name of the API library's copy. */
bool exti__store_is_api_copy(const struct exti_store *s, const char *path);

/* The private name of the API symbol `name`, or NULL. */
const char *exti__store_private_symbol(const struct exti_store *s, const char *name);

/* The name that the original gives a symbol which copies call `name`: for people. */
const char *exti__store_original_symbol(const struct exti_store *s, const char *name);

/* Calls `each` with the source of every copy that goes by `name`, which is its SONAME or a name
 * that another copy needs it by, until it returns true; returns whether it did.  Holds the store's
 * lock meanwhile. */
bool exti__store_each_named(struct exti_store *s, const char *name,
                            bool (*each)(void *user, const char *source), void *user);

/* How a loaded file relates to the sources of the context's copies. */
enum exti_source_relation {
    EXTI_SOURCE_NONE,
    EXTI_SOURCE_SAME,    /* it is one of them */
    EXTI_SOURCE_NAMESAKE /* it is another file, with the SONAME of one of them */
};

/* Classifies the loaded file `path`, whose SONAME is `soname` or NULL.  A path through other links
 * than the source's counts as the same if the file is.  For a relation other than NONE, calls
 * `found` with the source, under the store's lock. */
enum exti_source_relation exti__store_relation(struct exti_store *s, const char *path,
                                               const char *soname,
                                               void (*found)(void *user, const char *source),
                                               void *user);

#endif
