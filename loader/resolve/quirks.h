/* Rules for packages that need something of their own: those of the library and those of the user's
 * files, which of them apply to a file, and what becomes of it then.  extisolate-quirks(5) has the
 * format.  Nothing changes once they are read: any thread. */
#ifndef LOADER_RESOLVE_QUIRKS_H
#define LOADER_RESOLVE_QUIRKS_H

#include <jansson.h>
#include <stdbool.h>

#include "base/format.h"

/* Made from loader/quirks.json. */
extern const char exti__quirks_builtin[];

struct exti_quirk {
    const json_t *rule;      /* its file's, checked */
    const char *id;          /* the rule's */
    const char *file;        /* NULL: the library's own */
    const char *disabled_by; /* the later file that disables it or has a rule of its id; or NULL */
    size_t index;            /* within its file */
    char *text;              /* owned; the rule as JSON */
};

struct exti_quirk_file {
    char *path;   /* owned; NULL: the library's own */
    json_t *root; /* owned */
};

struct exti_quirks {
    struct exti_quirk_file *files; /* owned */
    size_t file_count;
    struct exti_quirk *rules; /* owned; later ones win */
    size_t count;
};

/* Adds the rules of a file's text; on failure only exti_quirks_free may follow.  `path` NULL: the
 * library's own. */
int exti__quirks_read(struct exti_quirks *q, const char *path, const char *text, size_t n,
                      struct exti_error *err);

enum exti_quirk_library { EXTI_QUIRK_NONE, EXTI_QUIRK_SHARE, EXTI_QUIRK_ISOLATE };

/* What the rules that apply to one file do to it.  The arrays are owned, the strings the rules'. */
struct exti_quirk_effect {
    enum exti_quirk_library library;         /* whether dependents share it or get copies */
    const char *library_by;                  /* the id of the rule that says so, or NULL */
    const char *refuse, *refused_by;         /* why it has no copy, and whose id; or NULL */
    struct exti_rename *renames, *redirects; /* no `from` twice */
    size_t rename_count, redirect_count;
};

/* `path` is the file's, `im` describes it. */
int exti__quirks_apply(const struct exti_quirks *q, const char *path, const struct exti_image *im,
                       struct exti_quirk_effect *out, struct exti_error *err);
/* The same for the same rules that copies and needs depend on, "" for none; exti__free it. */
int exti__quirks_key(const struct exti_quirks *q, char **out, struct exti_error *err);

/* Whether some rule has the member `name`. */
bool exti__quirks_have(const struct exti_quirks *q, const char *name);

void exti__quirk_effect_free(struct exti_quirk_effect *e);

#endif
