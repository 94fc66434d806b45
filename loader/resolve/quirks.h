/* Quirks: rules for packages that need special treatment.  The library's own rules come first,
 * then those of the user's files; extisolate-quirks(5) has the format.  They do not change once
 * read: any thread. */
#ifndef LOADER_RESOLVE_QUIRKS_H
#define LOADER_RESOLVE_QUIRKS_H

#include <stdbool.h>

#include "base/format.h"
#include "base/json.h"

/* Generated from loader/resolve/quirks.json. */
extern const char exti__quirks_builtin[];

struct exti_quirk {
    const struct exti_json *rule; /* checked; part of the file's JSON */
    const char *id;               /* part of `rule` */
    const char *file;             /* the path; NULL: the library's own */
    const char *disabled_by;      /* the later file that disables or replaces it; NULL: none */
    size_t index;                 /* within its file */
    char *text;                   /* owned; the rule as JSON */
};

struct exti_quirk_file {
    char *path;             /* owned; NULL: the library's own */
    struct exti_json *root; /* owned */
};

struct exti_quirks {
    struct exti_quirk_file *files; /* owned */
    size_t file_count;
    struct exti_quirk *rules; /* owned; later ones win */
    size_t count;
};

/* Adds the rules of a quirk file's text, of `n` bytes; `path` NULL: the library's own.  After an
 * error only exti_quirks_free may follow. */
int exti__quirks_read(struct exti_quirks *q, const char *path, const char *text, size_t n,
                      struct exti_error *err);

enum exti_quirk_library { EXTI_QUIRK_NONE, EXTI_QUIRK_SHARE, EXTI_QUIRK_ISOLATE };

/* The combined effect of all rules that apply to one file.  The arrays are owned; the strings
 * belong to the rules. */
struct exti_quirk_effect {
    enum exti_quirk_library library; /* whether dependents share it or get copies */
    const char *library_by;          /* the id of the rule that says so, or NULL */
    const char *refuse, *refused_by; /* why it cannot be isolated, and the rule's id; or NULL */
    struct exti_rename *renames, *redirects; /* each `from` once */
    size_t rename_count, redirect_count;
};

/* Works out the effect on the file `path`, which `im` describes.  exti__quirk_effect_free it. */
int exti__quirks_apply(const struct exti_quirks *q, const char *path, const struct exti_image *im,
                       struct exti_quirk_effect *out, struct exti_error *err);
/* A hash, for exti__free, of all rules that copies and dependencies depend on; "" if there are
 * none. */
int exti__quirks_key(const struct exti_quirks *q, char **out, struct exti_error *err);

/* Whether an enabled rule with redirects may apply to the file, as far as its path tells: only then
 * need it be read. */
bool exti__quirks_may_redirect(const struct exti_quirks *q, const char *path);

void exti__quirk_effect_free(struct exti_quirk_effect *e);

#endif
