/* The edits that turn a source into its context's copy.  They follow from the manifest, the
 * entry and the source's image alone, so that any copy can be made, or checked, again. */
#ifndef LOADER_STORE_EDITS_H
#define LOADER_STORE_EDITS_H

#include "base/format.h"
#include "base/json.h"
#include "base/path.h"
#include "loader/store/manifest.h"
#include "loader/store/private_symbols.h"

/* Options for the rewrite, with the storage that they point into; so it is not to be moved. */
struct exti_edits {
    struct exti_rewrite_opts opts;
    char id[EXTI_FILE_NAME_MAX + 1];
    char *origin; /* owned: the source's folder */
    char bind_name[EXTI_FILE_NAME_MAX + 32], bind_short[16];
    struct exti_needed *needed; /* owned */
    size_t needed_cap;
    struct exti_rename *renames; /* owned; NULL unless the entry has renames of its own */
    struct exti_json *own;       /* owned: the entry's own renames */
    char **names;                /* owned, NULL-ended: paths of needed copies, for Mach-O */
};

/* The edits for the API library's copy.  Reads the entry's source, copy name, needs and renames.
 * `out` is zero-filled; exti__edits_free it, on failure too. */
int exti__edits_api(const struct exti_manifest *m, const struct exti_entry *e,
                    const struct exti_image *im, const struct exti_private_symbols *renames,
                    struct exti_edits *out, struct exti_error *err);

/* The edits for any other copy.  Reads the entry's takes_api and symbolic too. */
int exti__edits_copy(const struct exti_manifest *m, const struct exti_entry *e,
                     const struct exti_image *im, const struct exti_private_symbols *renames,
                     struct exti_edits *out, struct exti_error *err);

void exti__edits_free(struct exti_edits *e);

/* The edits as the manifest records them: a JSON object; exti__free it. */
int exti__edits_json(const struct exti_edits *e, char **out, struct exti_error *err);

#endif
