/* Which edits turn a source into its context's copy.  A function of the manifest, the source and its
 * image alone, so that any copy can be made, or checked, again. */
#ifndef LOADER_STORE_EDITS_H
#define LOADER_STORE_EDITS_H

#include <jansson.h>

#include "base/format.h"
#include "loader/store/manifest.h"
#include "loader/store/private_symbols.h"

/* Options for the rewrite together with the storage that they point into. */
struct exti_edits {
    struct exti_rewrite_opts opts;
    char id[EXTI_FILE_NAME_MAX + 1];
    char *origin; /* owned: the source's folder */
    char bind_name[EXTI_FILE_NAME_MAX + 32], bind_short[16];
    struct exti_needed *needed; /* owned */
    size_t needed_cap;
    struct exti_rename *renames; /* owned, where the entry has some of its own */
    json_t *own;                 /* those */
    char **names;                /* owned, NULL-ended: what Mach-O names needed copies by */
};

/* The edits for the API library's copy.  Of `e` the source, the copy's name and the needs are given. */
int exti__edits_api(const struct exti_manifest *m, const struct exti_entry *e,
                    const struct exti_image *im, const struct exti_private_symbols *renames,
                    struct exti_edits *out, struct exti_error *err);

/* The edits for any other copy; of `e`, also what it takes and how it is bound. */
int exti__edits_copy(const struct exti_manifest *m, const struct exti_entry *e,
                     const struct exti_image *im, const struct exti_private_symbols *renames,
                     struct exti_edits *out, struct exti_error *err);

void exti__edits_free(struct exti_edits *e);

/* As the manifest tells them: a JSON object; exti__free it. */
int exti__edits_json(const struct exti_edits *e, char **out, struct exti_error *err);

#endif
